"""``csdplan ui``: a local page on which hardware, prices and workloads change the picture at once.

- ``quantities``, ``state``: all that a scenario consists of; ``link``: its form in a link;
- ``question``: the request of ``csdplan plan`` that it asks, and the file that holds it;
- ``parts``: parts of one's own, typed in or opened, and the file that keeps them;
- ``answer``: from a scenario to results, by the same functions as the commands;
- ``purchase``, ``figures``, ``fields``, ``layout``: results and fields as HTML;
- ``export``: results as files;
- ``server``: the protocol, and the server for this machine alone.

The page listens on this machine only, asks nothing of a network and keeps nothing: its whole state
is in its link, an uploaded profile and parts of one's own included.
"""
