import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ListChecks } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useStore } from "zustand";
import { askPage, type Schemas } from "../../api/client.ts";
import { apiOf } from "../../api/team.ts";
import { Problem } from "../../page/Problem.tsx";
import { active, looks, StatusPill } from "../../page/status.tsx";
import { Empty } from "../../ui/Empty.tsx";
import { Select } from "../../ui/Field.tsx";
import { bytes, count, duration } from "../../ui/format.ts";
import { SkeletonRows } from "../../ui/Skeleton.tsx";
import { Td, Th } from "../../ui/Table.tsx";
import { plain } from "../log/ansi.ts";
import type { RunEvent, RunNode } from "../queries.ts";
import type { RunStore } from "../runStore.ts";
import { itemCauseOf, named, tailOf } from "./failure.ts";
import { ItemDialog } from "./ItemDialog.tsx";
import { failedText, type Item, itemText, peak, took } from "./items.ts";

type Status = Schemas["NodeStatus"];
const states: Status[] = ["failed", "running", "retrying", "queued", "succeeded", "cancelled"];
const rowHeight = 45;
const failedRowHeight = 67; // with the error below the item
const pageSize = 200;

/** scattered lists the steps that run once per item. */
export const scattered = (nodes: Iterable<RunNode>): RunNode[] =>
  [...nodes].filter((node) => node.shards !== null && node.shards !== undefined);

interface ItemsProps {
  store: RunStore;
  node: string | null;
  onNode: (id: string) => void;
  onLog: (node: string, item: number) => void;
}

/** Items lists the items of the selected scatter, or of the first one. */
export function Items({ store, node, onNode, onLog }: ItemsProps) {
  const nodes = useStore(store.state, (state) => state.nodes);
  const list = scattered(nodes.values());
  const chosen = list.find((each) => each.id === node) ?? list[0];
  const [status, setStatus] = useState<Status | "">("");
  if (!chosen) {
    return (
      <Empty icon={<ListChecks />} title="No step of this run has items">
        A step with “Run once per item of” lists each of its items here.
      </Empty>
    );
  }
  const { total = 0, done = 0, failed = 0 } = chosen.shards ?? {};
  return (
    <>
      <div className="mb-2 flex flex-wrap items-center gap-2 text-sm">
        <Select
          aria-label="Step"
          className="h-8.5! w-auto! max-w-60"
          value={chosen.id}
          onChange={(event) => onNode(event.target.value)}
        >
          {list.map((each) => (
            <option key={each.id} value={each.id}>
              {each.name || each.id}
            </option>
          ))}
        </Select>
        <Select
          aria-label="State"
          className="h-8.5! w-auto!"
          value={status}
          onChange={(event) => setStatus(event.target.value as Status | "")}
        >
          <option value="">All states</option>
          {states.map((each) => (
            <option key={each} value={each}>
              {looks[each].word}
            </option>
          ))}
        </Select>
        <p role="status" className="text-muted">
          {count(done)} of {count(total)} items done{failed > 0 && `. ${failedText({ total, failed })}`}
        </p>
      </div>
      <ItemTable
        key={`${chosen.id} ${status}`}
        store={store}
        node={chosen}
        status={status}
        onLog={(item) => onLog(chosen.id, item)}
      />
    </>
  );
}

interface TableProps {
  store: RunStore;
  node: RunNode;
  status: Status | "";
  onLog: (item: number) => void;
}

/** ItemTable draws the visible rows, and loads more before the last row is reached. */
function ItemTable({ store, node, status, onLog }: TableProps) {
  const run = store.run.id;
  const going = useStore(store.state, (state) => active(state.run.status));
  const items = useInfiniteQuery({
    queryKey: ["items", run, node.id, status, going],
    queryFn: ({ client, pageParam }) =>
      askPage(
        apiOf(client).GET("/api/runs/{id}/nodes/{nodeId}/shards", {
          params: {
            path: { id: run, nodeId: node.id },
            query: { limit: pageSize, ...(status && { status }), ...(pageParam && { cursor: pageParam }) },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) => last.next ?? undefined,
    staleTime: 10 * 60_000, // as long as the addresses of files work
    // A refetch reads every loaded page, so a long list is refetched less often.
    refetchInterval: (query) => (going ? 4000 * Math.max(1, query.state.data?.pages.length ?? 1) : 12 * 60_000),
  });
  const events = useStore(store.state, (state) => state.events);
  const rows = items.data?.pages.flatMap((page) => page.rows) ?? [];
  const frame = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: (index) => (rows[index]?.status === "failed" ? failedRowHeight : rowHeight),
    getItemKey: (index) => `${rows[index]?.index} ${rows[index]?.status}`,
    overscan: 20,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = items;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && last >= rows.length - 60) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  const [open, setOpen] = useState<number | null>(null);
  const opened = open === null ? undefined : rows.find((row) => row.index === open);
  if (items.isError && !items.data) return <Problem error={items.error} retry={() => void items.refetch()} />;
  if (!items.data) return <SkeletonRows />;
  if (rows.length === 0)
    return (
      <Empty icon={<ListChecks />} title={status ? "No items in this state" : "No items yet"}>
        {status ? "Choose another state." : "They appear when the step starts."}
      </Empty>
    );
  const before = shown[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    <section
      ref={frame}
      tabIndex={0}
      aria-label={`Items of ${node.name || node.id}`}
      className="relative max-h-[32rem] overflow-auto rounded-lg border bg-surface"
    >
      <table
        aria-rowcount={hasNextPage ? -1 : rows.length + 1}
        className="w-full table-fixed border-collapse text-sm [overflow-anchor:none]"
      >
        <thead className="sticky top-0 z-10 bg-surface text-left text-[13px] text-muted shadow-[0_1px_0_var(--border)]">
          <tr aria-rowindex={1}>
            <Th className="w-16 text-right">#</Th>
            <Th>Item</Th>
            <Th className="w-32">State</Th>
            <Th className="w-20 text-right max-md:hidden">Attempts</Th>
            <Th className="w-24 text-right max-md:hidden">Duration</Th>
            <Th className="w-28 text-right max-md:hidden">Peak memory</Th>
            <Th className="w-24 text-right max-md:hidden">Exit status</Th>
            <Th className="w-16 text-right max-md:hidden">Files</Th>
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden style={{ height: before }} />}
          {shown.map(({ index }) => {
            const row = rows[index];
            return (
              row && (
                <Row
                  key={row.index}
                  row={row}
                  error={errorOf(row, node, events)}
                  place={index + 2}
                  onOpen={() => setOpen(row.index)}
                />
              )
            );
          })}
          {after > 0 && <tr aria-hidden style={{ height: after }} />}
        </tbody>
      </table>
      {opened && <ItemDialog store={store} node={node} item={opened} onLog={onLog} onClose={() => setOpen(null)} />}
    </section>
  );
}

/** errorOf is the last line that a failed item logged, or that of its message. */
function errorOf(row: Item, node: RunNode, events: readonly RunEvent[]): string | null {
  if (row.status !== "failed") return null;
  const line = tailOf(itemCauseOf(events, node.id, row.index), 1)[0];
  return line ? plain(line) : named(row.attempts.at(-1)?.message?.split("\n").at(-1) ?? "", node);
}

interface RowProps {
  row: Item;
  error: string | null;
  place: number;
  onOpen: () => void;
}

function Row({ row, error, place, onOpen }: RowProps) {
  const newest = row.attempts.at(-1);
  const lasted = newest ? took(newest) : null;
  const most = peak(row.attempts);
  return (
    <tr aria-rowindex={place} className={`border-b hover:bg-sunken/60 ${error === null ? "h-[45px]" : "h-[67px]"}`}>
      <Td className="tabular text-right text-muted">{row.index}</Td>
      <Td className="truncate">
        <button type="button" className="max-w-full truncate font-medium hover:underline" onClick={onOpen}>
          {itemText(row)}
        </button>
        {error && (
          <p className="truncate text-[13px] text-danger" title={error}>
            {error}
          </p>
        )}
      </Td>
      <Td>
        <StatusPill status={row.status} />
      </Td>
      <Td className="tabular text-right max-md:hidden">{row.attempts.length || "–"}</Td>
      <Td className="tabular text-right whitespace-nowrap max-md:hidden">
        {row.cached ? "reused" : lasted === null ? "–" : duration(lasted)}
      </Td>
      <Td className="tabular text-right whitespace-nowrap max-md:hidden">{most === null ? "–" : bytes(most)}</Td>
      <Td className="tabular text-right max-md:hidden">{newest?.exitCode ?? "–"}</Td>
      <Td className="tabular text-right max-md:hidden">{row.outputs.length}</Td>
    </tr>
  );
}
