# %% [markdown]
# # How sure is a break-even point?
#
# Times that a paper prints to two digits, or that were solved from such, have a spread. Drawing
# them again and again gives a distribution, and Sobol indices say which input it hangs on.

# %%
import csdplan as cp

tables = cp.uncertainty("newport", "count", host_cores=4, samples=20_000, base=256)
tables["quantiles"]

# %%
tables["indices"]

# %% [markdown]
# Half of the draws lie within a drive or two of 28. What matters most is how fast the drive reads
# its own flash: measure that first.

# %%
indices = tables["indices"].set_index("input")
assert indices["total"].idxmax() == "csd_tx_s"
assert 28 in tables["quantiles"]["devices"].tolist()

# %% [markdown]
# ## Where the equations stop
#
# A simulated job of many tasks agrees with the equations as long as data lie evenly, and falls
# behind them when they do not.

# %%
even = cp.simulate("newport", "count", cores=0, drives=16, enabled=[16], fluid=True)
skewed = cp.simulate("newport", "count", cores=0, drives=16, enabled=[16], fluid=True, skew=0.5)
assert abs(even["of_closed_form"].iloc[0] - 1) < 0.01
assert skewed["of_closed_form"].iloc[0] < 0.9
