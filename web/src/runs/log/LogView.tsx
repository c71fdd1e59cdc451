import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp, ChevronDown, ChevronUp, Download, Search, WrapText } from "lucide-react";
import { memo, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { Api } from "../../api/client.ts";
import { useApi } from "../../api/team.ts";
import { Button, IconButton } from "../../ui/Button.tsx";
import { classes } from "../../ui/classes.ts";
import { save } from "../../ui/download.ts";
import { Input, Select } from "../../ui/Field.tsx";
import { bytes, count } from "../../ui/format.ts";
import type { RunStore } from "../runStore.ts";
import { plain } from "./ansi.ts";
import { ColoredText } from "./ColoredText.tsx";
import { found } from "./logBuffer.ts";
import { LogSource, type LogTarget } from "./logSource.ts";

const lineHeight = 20;

interface LogViewProps {
  store: RunStore;
  node: string | null;
  onNode: (id: string | null) => void;
  /** Which item of a scattered step. */
  item: number;
  onItem: (item: number) => void;
  words: string;
  onWords: (words: string) => void;
  /** The line that a link leads to. */
  target: LogTarget | null;
  onTarget: (target: LogTarget) => void;
}

/** LogView shows a log of any length, with colors, search, and the newest lines while it grows. */
export function LogView(props: LogViewProps) {
  const { store, node, item } = props;
  const api = useApi();
  const [source, setSource] = useState<LogSource | null>(null);
  useEffect(() => {
    const made = new LogSource(api, store.run.id, node, item);
    const stop = store.onLog((text, offset, next) => made.receive(text, offset, next));
    setSource(made);
    return () => {
      stop();
      made.destroy();
    };
  }, [api, store, node, item]);
  return source && <Lines {...props} source={source} />;
}

/** Reading is where somebody is in a log. Another log begins anew. */
interface Reading {
  source: LogSource;
  /** Whether the newest lines stay in view. */
  follow: boolean;
  /** Which of the lines that are searched for is shown. */
  current: number;
  /** How many lines there were when following stopped. */
  seen: number;
}

function Lines(props: LogViewProps & { source: LogSource }) {
  const { store, node, onNode, item, onItem, words, onWords, target, onTarget, source } = props;
  const api = useApi();
  const { version, loading, error, size } = useSyncExternalStore(source.subscribe, source.now);
  const frame = useRef<HTMLDivElement>(null);
  const scrolled = useRef({ top: 0, height: 0 });
  // biome-ignore lint/correctness/useExhaustiveDependencies: where the log before was scrolled to means nothing
  useLayoutEffect(() => {
    scrolled.current = { top: 0, height: 0 };
  }, [source]);
  const [wrap, setWrap] = useState(false);
  const start: Reading = { source, follow: target === null && words === "", current: 0, seen: 0 };
  const [reading, setReading] = useState(start);
  if (reading.source !== source) setReading(start);
  const { follow, current, seen } = reading;
  const change = (changes: Partial<Reading>) => setReading((before) => ({ ...before, ...changes }));
  const { lines, offsets } = source.buffer;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the lines change in place, and their version tells
  const hits = useMemo(() => found(lines, words), [lines, words, version]);
  const hitSet = useMemo(() => new Set(hits), [hits]);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => lineHeight,
    overscan: 30,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: with every new line
  useEffect(() => {
    if (follow && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [source, version, follow]);
  // The sources whose lines were read, and shown, because a link leads to one of them.
  const read = useRef<LogSource>(null);
  const jumped = useRef<LogSource>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the linked line is there
  useEffect(() => {
    if (target === null || loading || error !== null || jumped.current === source) return;
    const missing = "line" in target ? !source.buffer.complete : target.byte < source.buffer.start;
    if (missing && read.current !== source) {
      read.current = source;
      void ("line" in target ? source.upTo(target.line) : source.whole());
      return;
    }
    jumped.current = source;
    virtual.scrollToIndex(source.indexOf(target) ?? lines.length - 1, { align: "center" });
    frame.current?.scrollIntoView({ block: "center" });
  }, [source, version, loading]);
  // A search covers the whole log, so the parts that are missing are read.
  useEffect(() => {
    if (words) void source.whole();
  }, [words, source]);
  const go = (step: number) => {
    if (hits.length === 0) return;
    const next = (current + step + hits.length) % hits.length;
    change({ current: next, follow: false });
    virtual.scrollToIndex(hits[next] ?? 0, { align: "center" });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when other words are searched
  useEffect(() => {
    change({ current: 0 });
    if (words && hits.length > 0) {
      change({ follow: false });
      virtual.scrollToIndex(hits[0] ?? 0, { align: "center" });
    }
  }, [words, hits.length > 0]);
  const items = (node && store.state.getState().nodes.get(node)?.shards?.total) || null;
  const marked = target === null ? null : source.indexOf(target);
  return (
    <div className="flex h-[32rem] flex-col rounded-lg border bg-surface">
      <div className="flex flex-wrap items-center gap-1.5 border-b p-2">
        <Select
          aria-label="Log of"
          className="h-8.5! w-auto! max-w-52"
          value={node ?? ""}
          onChange={(event) => onNode(event.target.value || null)}
        >
          <option value="">Whole run</option>
          {[...store.state.getState().nodes.values()]
            .filter((each) => !each.launchedBy)
            .map((each) => (
              <option key={each.id} value={each.id}>
                {each.name || each.id}
              </option>
            ))}
        </Select>
        {items !== null && (
          <Input
            type="number"
            aria-label={`Item, 0 to ${items - 1}`}
            title="Item"
            className="h-8.5! w-24!"
            min={0}
            max={items - 1}
            value={item}
            onChange={(event) => event.target.checkValidity() && onItem(event.target.valueAsNumber || 0)}
          />
        )}
        <div className="relative min-w-36 flex-1 max-sm:order-last max-sm:basis-full">
          <Search className="pointer-events-none absolute top-2.25 left-2.5 size-4 text-muted" aria-hidden />
          <Input
            type="search"
            aria-label="Search the log"
            placeholder="Search the whole log"
            className="h-8.5! pl-8.5"
            value={words}
            onChange={(event) => onWords(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && go(event.shiftKey ? -1 : 1)}
          />
        </div>
        {words && (
          <span role="status" className="tabular text-[13px] text-muted">
            {loading
              ? "Loading…"
              : hits.length === 0
                ? "No results"
                : `${count(current + 1)} of ${count(hits.length)} ${hits.length === 1 ? "line" : "lines"}`}
          </span>
        )}
        <div className="ml-auto flex gap-1.5">
          <IconButton
            size="sm"
            label="Previous match"
            disabled={hits.length === 0}
            icon={<ChevronUp className="size-4" aria-hidden />}
            onClick={() => go(-1)}
          />
          <IconButton
            size="sm"
            label="Next match"
            disabled={hits.length === 0}
            icon={<ChevronDown className="size-4" aria-hidden />}
            onClick={() => go(1)}
          />
          <IconButton
            size="sm"
            label={wrap ? "Don't wrap long lines" : "Wrap long lines"}
            aria-pressed={wrap}
            icon={<WrapText className="size-4" aria-hidden />}
            onClick={() => setWrap(!wrap)}
          />
          <IconButton
            size="sm"
            label="Download log"
            icon={<Download className="size-4" aria-hidden />}
            onClick={() => void download(api, store.run.id, node, item, size)}
          />
        </div>
      </div>
      <section
        ref={frame}
        aria-label="Log"
        tabIndex={0}
        className="relative min-h-0 flex-1 overflow-auto font-mono text-[12.5px] leading-5"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          const { top, height } = scrolled.current;
          scrolled.current = { top: scrollTop, height: scrollHeight };
          // On a busy machine the height of the element can be that of fewer lines than are loaded.
          const full = Math.max(scrollHeight, lines.length * lineHeight);
          const bottom = source.later === 0 && full - scrollTop - clientHeight < 30;
          // New lines, and following them, never scroll up; only a person does, or a log that becomes shorter.
          const up = scrollTop < top && scrollHeight >= height;
          if (bottom !== follow && (bottom || up)) change({ follow: bottom, seen: lines.length });
        }}
      >
        {!source.buffer.complete && (
          <div className="flex items-center gap-3 px-3 py-1.5 font-sans text-[13px] text-muted">
            <Button
              size="sm"
              busy={loading}
              icon={<ArrowUp className="size-4" aria-hidden />}
              onClick={() => void source.earlier()}
            >
              Load earlier lines
            </Button>
            {bytes(source.buffer.start)} before this
          </div>
        )}
        {error && <p className="px-3 py-2 font-sans text-sm text-danger">{error}</p>}
        {lines.length === 0 && !error && (
          <p className="px-3 py-4 font-sans text-sm text-muted">{loading ? "Loading…" : "Nothing logged yet."}</p>
        )}
        <div
          className="relative min-w-full"
          style={{ height: virtual.getTotalSize(), ...(!wrap && { width: "max-content" }) }}
        >
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              data-index={item.index}
              ref={wrap ? virtual.measureElement : undefined}
              className="absolute left-0 w-full"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <LogLine
                text={lines[item.index] ?? ""}
                number={source.buffer.complete ? item.index + 1 : null}
                wrap={wrap}
                hit={hitSet.has(item.index) ? words : ""}
                now={hits[current] === item.index || marked === item.index}
                onLink={() =>
                  onTarget(source.buffer.complete ? { line: item.index + 1 } : { byte: offsets[item.index] ?? 0 })
                }
              />
            </div>
          ))}
        </div>
        {source.later > 0 && (
          <div className="flex items-center gap-3 px-3 py-1.5 font-sans text-[13px] text-muted">
            <Button
              size="sm"
              busy={loading}
              icon={<ArrowDown className="size-4" aria-hidden />}
              onClick={() => void source.after()}
            >
              Load later lines
            </Button>
            {bytes(source.later)} after this
          </div>
        )}
      </section>
      {!follow && lines.length > 0 && (
        <Button
          size="sm"
          look="primary"
          className="relative mx-auto -mt-11 mb-3 shadow-lift"
          icon={<ArrowDown className="size-4" aria-hidden />}
          onClick={() => {
            change({ follow: true });
            void source.latest();
          }}
        >
          Jump to latest{lines.length > seen && seen > 0 ? ` · ${count(lines.length - seen)} new` : ""}
        </Button>
      )}
    </div>
  );
}

const LogLine = memo(function LogLine(props: {
  text: string;
  number: number | null;
  wrap: boolean;
  hit: string;
  now: boolean;
  onLink: () => void;
}) {
  const { text, number, wrap, hit, now, onLink } = props;
  return (
    <div className={classes("flex gap-3 pr-3", now ? "bg-warn-soft" : hit ? "bg-accent-soft" : "hover:bg-sunken")}>
      <button
        type="button"
        tabIndex={-1}
        aria-label={number === null ? "Link to this line" : `Link to line ${number}`}
        onClick={onLink}
        className="tabular w-14 shrink-0 bg-sunken pr-2 text-right text-muted select-none hover:underline"
      >
        {number ?? "·"}
      </button>
      <span className={wrap ? "min-w-0 break-words whitespace-pre-wrap" : "whitespace-pre"}>
        {hit ? <Marked text={plain(text)} words={hit} /> : <ColoredText text={text} />}
      </span>
    </div>
  );
});

function Marked({ text, words }: { text: string; words: string }) {
  const at = text.toLowerCase().indexOf(words.toLowerCase());
  if (at < 0) return text;
  return (
    <>
      {text.slice(0, at)}
      <mark className="bg-warn text-bg">{text.slice(at, at + words.length)}</mark>
      {text.slice(at + words.length)}
    </>
  );
}

/** download reads the whole log, page by page, into one file. */
async function download(api: Api, runId: string, node: string | null, item: number, size: number): Promise<void> {
  const parts: string[] = [];
  for (let offset = 0; offset < Math.max(size, 1); ) {
    const query = new URLSearchParams({
      offset: String(offset),
      limit: String(1 << 20),
      ...(node && { nodeId: node, shard: String(item) }),
    });
    const response = await api.raw(`/api/runs/${encodeURIComponent(runId)}/logs?${query}`);
    const { data } = (await response.json()) as { data: { text: string; nextOffset: number } };
    if (data.nextOffset <= offset) break;
    parts.push(data.text);
    offset = data.nextOffset;
  }
  save(`${node ?? runId}.log`, parts.join(""), "text/plain");
}
