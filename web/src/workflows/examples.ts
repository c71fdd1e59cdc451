// The examples of the repository as they are, which the app loads as one file.
type Files<T> = Record<string, T>;

export const graphs: Files<unknown> = import.meta.glob("../../../examples/*/workflow.json", {
  eager: true,
  import: "default",
});
export const outcomes: Files<unknown> = import.meta.glob("../../../examples/*/expect.json", {
  eager: true,
  import: "default",
});
export const readmes: Files<string> = import.meta.glob("../../../examples/*/README.md", {
  eager: true,
  query: "?raw",
  import: "default",
});
/** sampleUrls is where the app itself keeps sample files. */
export const sampleUrls: Files<string> = import.meta.glob("../../../examples/*/inputs/*", {
  eager: true,
  query: "?url",
  import: "default",
});
export { default as list } from "../../../examples/README.md?raw";
