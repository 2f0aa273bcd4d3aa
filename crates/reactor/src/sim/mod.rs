//! A world of simulated machines: a virtual clock, a network and randomness from one seed.
