import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

configure({ asyncUtilTimeout: 20_000 }); // a busy machine takes longer than a second to load a module

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  localStorage.clear();
});
