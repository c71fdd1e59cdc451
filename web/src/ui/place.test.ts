import { expect, test } from "vitest";
import { place } from "./place.ts";

const window = { width: 1000, height: 600 };
const box = { width: 100, height: 40 };

test("a box lies on its side, centred, with a gap", () => {
  const about = { left: 400, top: 300, width: 20, height: 20 };
  expect(place(about, box, "top", window)).toEqual({ left: 360, top: 254 });
  expect(place(about, box, "bottom", window)).toEqual({ left: 360, top: 326 });
  expect(place(about, box, "left", window)).toEqual({ left: 294, top: 290 });
  expect(place(about, box, "right", window)).toEqual({ left: 426, top: 290 });
});

test("without room it goes to the other side, and never out of the window", () => {
  expect(place({ left: 0, top: 4, width: 20, height: 20 }, box, "top", window)).toEqual({ left: 8, top: 30 });
  expect(place({ left: 980, top: 300, width: 20, height: 20 }, box, "right", window)).toEqual({ left: 874, top: 290 });
  expect(place({ left: 0, top: 0, width: 1000, height: 600 }, box, "top", window)).toEqual({ left: 450, top: 8 });
});
