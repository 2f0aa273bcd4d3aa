# %% [markdown]
# # What to buy
#
# A request says what may be bought and what it must do. The shipped one has three hosts, an SSD and
# two drives that compute, and asks for two workloads at once on 16 TB within 5,000 dollars.

# %%
from dataclasses import replace

import csdplan as cp
from csdplan.request import load_request

request = load_request("epyc")
tables = cp.optimize(request)
tables["bill"]

# %%
tables["requirements"]

# %% [markdown]
# The bill keeps to the budget, and holds the capacity that is required.

# %%
cost_usd = tables["bill"]["cost_usd"].iloc[-1]
assert cost_usd <= 5000
assert "optimal" in tables["bill"].attrs["note"]

# %% [markdown]
# ## A request that nothing satisfies
#
# With 700 dollars there is no purchase. The answer is which requirement is in the way, and how far
# it would have to give.

# %%
poor = replace(request, limits=replace(request.limits, budget_usd=700.0))
lacking = cp.optimize(poor)["lacking"]
lacking

# %%
budget = lacking.set_index("requirement").loc["budget"]
assert abs(budget["possible_alone"] - cost_usd) < 0.01
