/** first is what the welcome says about the first template, so that it need not load them all. */
export const first = {
  name: "Estimate π by Monte Carlo",
  description:
    "Throws darts in parallel, one shard per seed, and puts the shards together into one estimate with its error.",
};
