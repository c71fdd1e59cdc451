// Copied steps are text: they can be pasted into another workflow, a mail, or
// an issue, and a whole definition can be pasted back.
import { isRecord } from "../../api/failure.ts";
import type { GraphEdge, GraphNode } from "../../definition/model.ts";
import { namePattern } from "../../definition/names.ts";
import type { Piece } from "./document.ts";

export function pieceText(piece: Piece): string {
  return JSON.stringify({ version: 1, ...piece }, null, 2);
}

/** readPiece reads the steps and edges of a text, and leaves out what is none; null if there are no steps. */
export function readPiece(text: string): Piece | null {
  if (!text.trimStart().startsWith("{") || text.length > 8_000_000) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (isRecord(value) && isRecord(value.definition)) value = value.definition;
  if (!isRecord(value) || !Array.isArray(value.nodes)) return null;
  const nodes = value.nodes.filter(isNode);
  const ids = new Set(nodes.map((node) => node.id));
  const edges = (Array.isArray(value.edges) ? value.edges : []).filter(
    (edge): edge is GraphEdge => isRecord(edge) && ids.has(String(edge.source)) && ids.has(String(edge.target)),
  );
  return nodes.length > 0 ? { nodes, edges } : null;
}

function isNode(value: unknown): value is GraphNode {
  return isRecord(value) && typeof value.id === "string" && namePattern.test(value.id);
}
