import { defineConfig } from "vitest/config";

const module = (name: string) => new URL(`node_modules/${name}/`, import.meta.url).pathname;

// The tests in Chromium: they lie outside of web/, and so find their modules
// by name here.
export default defineConfig({
  resolve: {
    alias: {
      "playwright-core": `${module("playwright-core")}index.mjs`,
      "axe-core": `${module("axe-core")}axe.js`,
      standardwebhooks: `${module("standardwebhooks")}dist/index.js`,
      vitest: `${module("vitest")}dist/index.js`,
    },
  },
  server: { fs: { strict: false } },
  test: {
    root: new URL("../e2e/browser", import.meta.url).pathname,
    include: ["*.test.ts"],
    environment: "node",
    testTimeout: 600_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 90_000 } },
    isolate: false, // they share nothing but the code
    maxWorkers: 3, // each file has a server and a browser of its own, and waits for them
  },
});
