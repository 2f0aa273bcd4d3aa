# %% [markdown]
# # Where drives that compute overtake SSDs
#
# Open this file as a notebook (Jupyter with jupytext, VS Code, Spyder), or run it as a script.
# Each cell ends with a statement of what is to be seen; a test runs them all.

# %%
import csdplan as cp

table = cp.bep("newport", "count", host_cores=[1, 4, 16])
table[["host_cores", "devices", "closed_form_devices", "difference"]]

# %% [markdown]
# A host core more makes each SSD faster, so more drives are needed to overtake. The closed form is
# right for one core; beyond, it lets SSDs be added that the host's link cannot take in.

# %%
assert table["devices"].tolist() == [12, 28, 44]
assert table["difference"].tolist() == ["none", "k_limit", "k_limit"]

# %% [markdown]
# ## What a better drive would do
#
# `grid` returns an xarray data set over every combination that is asked for.

# %%
grid = cp.grid("newport", "count", host_cores=[4], bandwidth=[1, 2, 4], compute=[1, 2, 4])
devices = grid["devices"].squeeze()
devices.to_pandas()

# %% [markdown]
# This drive spends most of its time reading from its own flash: doubling its bandwidth takes away
# far more drives than doubling its computational power.

# %%
faster_read = int(devices.sel(bandwidth=2, compute=1))
faster_compute = int(devices.sel(bandwidth=1, compute=2))
assert faster_read < faster_compute < int(devices.sel(bandwidth=1, compute=1))

# %% [markdown]
# ## What the host's link does
#
# With a link for twice as many SSDs the plateau of the SSDs is higher, and the break-even point
# further out.

# %%
wider = cp.grid("newport", "count", host_cores=[4], k_limit=[4, 8, 16])["devices"].squeeze()
assert list(wider.values) == sorted(wider.values)
wider.to_pandas()
