import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Where `npm run dev` finds a running server.
const server = process.env.MILLRACE_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react(), tailwind()],
  build: {
    outDir: "dist",
    emptyOutDir: false, // tools/build.mjs does, and leaves what keeps the folder
    manifest: "manifest.json",
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 800,
    // What pages share comes in a few files, not one for each icon: every request takes
    // its time, however small its answer.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "icons", test: /lucide-react/, minShareCount: 3, priority: 4 },
            {
              name: "react",
              test: /node_modules\/(react|react-dom|scheduler|use-sync-external-store|@tanstack\/(?!.*virtual)[\w-]+)\//,
              priority: 2,
            },
            // What menus and dialogs share comes when one opens.
            { name: "radix", test: /@radix-ui/, minShareCount: 3, maxModuleSize: 8000, priority: 1.5 },
            // The first page has neither files nor forms of runs.
            { name: "common", test: /^(?!.*src\/(files|runs)\/)/, minShareCount: 5, maxModuleSize: 8000, priority: 1 },
            { name: "tray", test: /src\/files\/(tray|taken)/, priority: 1 },
            { name: "inputs", minShareCount: 5, maxModuleSize: 8000 },
          ],
        },
      },
    },
  },
  server: {
    fs: { allow: [".."] },
    proxy: Object.fromEntries(
      ["/api", "/auth", "/oauth", "/objects", "/checkout", "/invoices", "/docs", "/help", "/clients", "/editor"].map(
        (path) => [path, { target: server, ws: path === "/editor" }],
      ),
    ),
  },
});
