// Everything that can be done on the canvas: one table, which keys, buttons, menus and
// the list of shortcuts all use.
import {
  ClipboardPaste,
  Copy,
  CopyPlus,
  Keyboard,
  type LucideIcon,
  Maximize,
  PanelRight,
  Plus,
  Redo2,
  Scan,
  Scissors,
  Search,
  SquareDashedMousePointer,
  SquareX,
  Trash2,
  Undo2,
  Wand2,
} from "lucide-react";
import { copyText } from "../../ui/copyText.ts";
import { toast } from "../../ui/toast.ts";
import { pieceText, readPiece } from "../document/clipboard.ts";
import type { Document } from "../document/document.ts";
import type { GraphStore } from "../document/store.ts";
import { shown } from "./keys.ts";

/** CanvasView is how the canvas is looked at. Panels that lie over it count as not visible. */
export interface CanvasView {
  /** fit shows these steps, or all. */
  fit: (keys?: readonly string[]) => void;
  /** reveal moves the view once these steps are drawn, and only if one of them is not visible. */
  reveal: (keys: readonly string[]) => void;
  /** middle returns the middle of what is visible. */
  middle: () => { x: number; y: number };
  /** focus gives the keyboard to a step. It reports whether the step is drawn; cards out of view may not be. */
  focus: (key: string) => boolean;
}

/** Target is what actions are done to. */
export interface Target {
  graph: GraphStore;
  canEdit: boolean;
  view: CanvasView;
  /** open shows a part of the editor. */
  open: (part: "insert" | "find" | "shortcuts" | "palette" | "panel") => void;
}

export interface Action {
  label: string;
  group: "Edit" | "Select" | "View";
  icon: LucideIcon;
  shortcuts: readonly string[];
  /** Whether it changes the workflow. */
  edits?: true;
  /** The event of the browser that does it in place of a key, because only that may use the clipboard. */
  event?: "copy" | "cut" | "paste";
  /** unavailable says why it cannot be done; null when it can. */
  unavailable?: (target: Target) => string | null;
  run: (target: Target, clipboard?: DataTransfer) => void;
}

const selected = ({ graph }: Target) => graph.selected().nodes;
const noStep = (target: Target) => (selected(target).length > 0 ? null : "Select a step first");
const noSteps = ({ graph }: Target) => (graph.now().nodes.length > 0 ? null : "There are no steps yet");
const nothing = (target: Target) => {
  const { nodes, edges } = target.graph.selected();
  return nodes.length + edges.length > 0 ? null : "Select a step or a line first";
};

/** added selects and shows steps that were just added. */
function added({ graph, view }: Target, keys: readonly string[]): void {
  graph.select(keys);
  view.reveal(keys);
}

/** instead names the keys that may use the clipboard where a menu may not. */
const instead = (shortcut: string) => `Press ${shown(shortcut)} instead.`;

/** copy reports whether the selected steps are on the clipboard. */
async function copy(target: Target, clipboard: DataTransfer | undefined, shortcut: string): Promise<boolean> {
  const text = pieceText(target.graph.document.take(selected(target)));
  if (!clipboard) return copyText(text, instead(shortcut));
  clipboard.setData("text/plain", text);
  return true;
}

/** cut removes the selected steps once they are on the clipboard. */
async function cut(target: Target, clipboard: DataTransfer | undefined): Promise<void> {
  const keys = selected(target);
  if (await copy(target, clipboard, "Mod+X")) target.graph.document.remove(keys, []);
}

async function paste(target: Target, clipboard: DataTransfer | undefined): Promise<void> {
  let text: string;
  try {
    text = clipboard ? clipboard.getData("text/plain") : await navigator.clipboard.readText();
  } catch {
    toast.info("The browser doesn't let this page use the clipboard", { description: instead("Mod+V") });
    return;
  }
  pasteText(target, text);
}

function pasteText(target: Target, text: string): void {
  const piece = readPiece(text);
  if (!piece) return void toast.info("The clipboard has no steps.");
  const xs = piece.nodes.map((node) => node.position?.x ?? 0);
  const ys = piece.nodes.map((node) => node.position?.y ?? 0);
  const middle = target.view.middle();
  const offset = {
    x: middle.x - (Math.min(...xs) + Math.max(...xs)) / 2,
    y: middle.y - (Math.min(...ys) + Math.max(...ys)) / 2,
  };
  added(target, target.graph.document.paste(piece, offset));
}

const steps = (document: Document) => ({
  undo: document.undo.canUndo() ? null : "Nothing to undo",
  redo: document.undo.canRedo() ? null : "Nothing to redo",
});

export const actions = {
  palette: {
    label: "Add a step",
    group: "Edit",
    icon: Plus,
    shortcuts: [],
    edits: true,
    run: ({ open }) => open("palette"),
  },
  insert: {
    label: "Add a step by name",
    group: "Edit",
    icon: Plus,
    shortcuts: ["A"],
    edits: true,
    run: ({ open }) => open("insert"),
  },
  undo: {
    label: "Undo your last edit",
    group: "Edit",
    icon: Undo2,
    shortcuts: ["Mod+Z"],
    edits: true,
    unavailable: ({ graph }) => steps(graph.document).undo,
    run: ({ graph }) => graph.document.undo.undo(),
  },
  redo: {
    label: "Redo",
    group: "Edit",
    icon: Redo2,
    shortcuts: ["Mod+Shift+Z", "Mod+Y"],
    edits: true,
    unavailable: ({ graph }) => steps(graph.document).redo,
    run: ({ graph }) => graph.document.undo.redo(),
  },
  tidy: {
    label: "Tidy up",
    group: "Edit",
    icon: Wand2,
    shortcuts: [],
    edits: true,
    unavailable: noSteps,
    run: (target) => {
      const { graph, view } = target;
      const keys = selected(target);
      const all = graph.now().nodes.map((node) => node.id);
      graph.document.tidy(keys.length > 1 ? keys : undefined);
      view.reveal(keys.length > 1 ? keys : all);
    },
  },
  copy: {
    label: "Copy",
    group: "Edit",
    icon: Copy,
    shortcuts: ["Mod+C"],
    event: "copy",
    unavailable: noStep,
    run: (target, clipboard) => void copy(target, clipboard, "Mod+C"),
  },
  cut: {
    label: "Cut",
    group: "Edit",
    icon: Scissors,
    shortcuts: ["Mod+X"],
    event: "cut",
    edits: true,
    unavailable: noStep,
    run: (target, clipboard) => void cut(target, clipboard),
  },
  paste: {
    label: "Paste",
    group: "Edit",
    icon: ClipboardPaste,
    shortcuts: ["Mod+V"],
    event: "paste",
    edits: true,
    run: (target, clipboard) => void paste(target, clipboard),
  },
  duplicate: {
    label: "Duplicate",
    group: "Edit",
    icon: CopyPlus,
    shortcuts: ["Mod+D"],
    edits: true,
    unavailable: noStep,
    run: (target) => {
      const { document } = target.graph;
      added(target, document.paste(document.take(selected(target)), { x: 40, y: 40 }));
    },
  },
  remove: {
    label: "Delete",
    group: "Edit",
    icon: Trash2,
    shortcuts: ["Delete", "Backspace"],
    edits: true,
    unavailable: nothing,
    run: ({ graph }) => {
      const { nodes, edges } = graph.selected();
      graph.document.remove(nodes, edges);
    },
  },
  selectAll: {
    label: "Select all",
    group: "Select",
    icon: SquareDashedMousePointer,
    shortcuts: ["Mod+A"],
    unavailable: noSteps,
    run: ({ graph }) => graph.select(graph.now().nodes.map((node) => node.id)),
  },
  selectNone: {
    label: "Clear selection",
    group: "Select",
    icon: SquareX,
    shortcuts: ["Escape"],
    unavailable: nothing,
    run: ({ graph }) => graph.select([]),
  },
  find: {
    label: "Find a step",
    group: "View",
    icon: Search,
    shortcuts: ["Mod+F"],
    run: ({ open }) => open("find"),
  },
  fit: {
    label: "Show all steps",
    group: "View",
    icon: Maximize,
    shortcuts: ["Mod+0"],
    unavailable: noSteps,
    run: ({ view }) => view.fit(),
  },
  fitSelection: {
    label: "Show the selected steps",
    group: "View",
    icon: Scan,
    shortcuts: [],
    unavailable: noStep,
    run: (target) => target.view.fit(selected(target)),
  },
  panel: {
    label: "Show or hide the details",
    group: "View",
    icon: PanelRight,
    shortcuts: [],
    run: ({ open }) => open("panel"),
  },
  shortcuts: {
    label: "Keyboard shortcuts",
    group: "View",
    icon: Keyboard,
    shortcuts: [],
    run: ({ open }) => open("shortcuts"),
  },
} as const satisfies Record<string, Action>;

export type ActionName = keyof typeof actions;

/** whyNot says why an action cannot be done; null when it can. */
export function whyNot(name: ActionName, target: Target): string | null {
  const action: Action = actions[name];
  if (action.edits && !target.canEdit) return "You have view-only access.";
  return action.unavailable?.(target) ?? null;
}

/** Actions does the actions of the table to a target that changes. */
export interface Actions {
  target: () => Target;
  run: (name: ActionName, clipboard?: DataTransfer) => void;
}

/** newActions makes actions for whatever the target is when one is done. What cannot be done does nothing. */
export function newActions(target: () => Target): Actions {
  return {
    target,
    run: (name, clipboard) => {
      const now = target();
      if (whyNot(name, now) === null) (actions[name] as Action).run(now, clipboard);
    },
  };
}

/** actionOf finds the action of a shortcut. */
export function actionOf(shortcut: string): ActionName | undefined {
  return names.find((name) => {
    const { event, shortcuts }: Action = actions[name];
    return event === undefined && shortcuts.includes(shortcut);
  });
}

export const names = Object.keys(actions) as ActionName[];
