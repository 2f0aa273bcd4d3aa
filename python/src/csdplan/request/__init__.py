"""Purchase requests: from a TOML file and the profiles it names to ``solve.purchase``.

- ``load``: the schema of a request, and its conversion to plain numbers.
- ``ask``, ``offer``: a question as a person asks it, and the request that it becomes; ``stock``:
  with parts that are there; ``windows``: for times of a day.
- ``shipped``: examples, as data.
"""

from csdplan.request.load import RequestFile, load_request, parse_request, request_names

__all__ = ["RequestFile", "load_request", "parse_request", "request_names"]
