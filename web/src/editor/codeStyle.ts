import { HighlightStyle } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

/** Colours of code, from the theme: readable in light and dark. */
export const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
  { tag: [tags.comment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--info)" },
  { tag: [tags.variableName, tags.definition(tags.variableName), tags.propertyName], color: "var(--ink)" },
  { tag: [tags.standard(tags.variableName), tags.function(tags.variableName)], color: "var(--warn)" },
]);

/** tabThrough lets Tab pass by a text that the keyboard only came across; it indents once somebody has typed or clicked there. */
export const tabThrough = EditorView.domEventHandlers({
  focus: (_event, view) => view.setTabFocusMode(true),
  click: (_event, view) => view.setTabFocusMode(false),
  beforeinput: (_event, view) => view.setTabFocusMode(false),
});
