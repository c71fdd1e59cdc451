// Where a small box goes beside what it is about.

export type Side = "top" | "right" | "bottom" | "left";

interface Extent {
  width: number;
  height: number;
}

interface Rect extends Extent {
  left: number;
  top: number;
}

const gap = 6; // from the element
const edge = 8; // from the window

const opposite: Record<Side, Side> = { top: "bottom", bottom: "top", left: "right", right: "left" };

/** place puts a box on a side of an element, or on the other one where it does not fit, and inside the window. */
export function place(about: Rect, box: Extent, side: Side, window: Extent): { left: number; top: number } {
  const wanted = beside(about, box, side);
  const other = beside(about, box, opposite[side]);
  const { left, top } = fits(wanted, box, side, window) || !fits(other, box, side, window) ? wanted : other;
  return {
    left: Math.max(edge, Math.min(left, window.width - box.width - edge)),
    top: Math.max(edge, Math.min(top, window.height - box.height - edge)),
  };
}

function beside(about: Rect, box: Extent, side: Side): { left: number; top: number } {
  const left = about.left + (about.width - box.width) / 2;
  const top = about.top + (about.height - box.height) / 2;
  switch (side) {
    case "top":
      return { left, top: about.top - box.height - gap };
    case "bottom":
      return { left, top: about.top + about.height + gap };
    case "left":
      return { left: about.left - box.width - gap, top };
    case "right":
      return { left: about.left + about.width + gap, top };
  }
}

/** fits tells whether the box is inside the window, along the axis that the side is on. */
function fits(at: { left: number; top: number }, box: Extent, side: Side, window: Extent): boolean {
  return side === "top" || side === "bottom"
    ? at.top >= edge && at.top + box.height <= window.height - edge
    : at.left >= edge && at.left + box.width <= window.width - edge;
}
