"""Purchase requests: from a TOML file and the profiles it names to ``solve.purchase``.

- ``load``: the schema of a request, and its conversion to plain numbers.
- ``shipped``: examples, as data.
"""

from csdplan.request.load import RequestFile, load_request, parse_request, request_names

__all__ = ["RequestFile", "load_request", "parse_request", "request_names"]
