import { defineConfig, mergeConfig } from "vitest/config";
import app from "./vite.config.ts";

export default mergeConfig(
  app,
  defineConfig({
    test: {
      environment: "happy-dom",
      isolate: false, // a tenth of the time; tests clean up after themselves
      include: ["src/**/*.test.{ts,tsx}"],
      setupFiles: ["src/app/test-setup.ts"],
      testTimeout: 30_000,
      expect: { poll: { timeout: 20_000 } }, // a busy machine is slow, not broken
    },
  }),
);
