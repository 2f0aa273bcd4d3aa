"""``csdplan ui``: a local page on which profile, sliders and prices change the picture at once.

- ``state``: all that the page shows depends on, and its form in a link;
- ``answer``: from a state to results, by the same functions as the commands;
- ``figures``: results as plain Plotly dictionaries;
- ``layout``, ``server``: the Dash page. They need the extra ``ui``; the rest does not.

The page listens on this machine only, asks nothing of a network and keeps nothing: its whole state
is in its link, an uploaded profile included.
"""
