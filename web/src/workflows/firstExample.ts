/** first is what the welcome says about the first template, so that it need not load them all. */
export const first = {
  name: "Estimate π by Monte Carlo",
  description: "Throws darts in parallel, one item per seed, and adds them up to one estimate with its error.",
};
