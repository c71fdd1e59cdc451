import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { Bot, CircleStop, Plus, Send, UserRound } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { ask, bare } from "../api/client.ts";
import { isFailure } from "../api/failure.ts";
import { apiOf, useTeam } from "../api/team.ts";
import { useMissing } from "../identity/queries.ts";
import { Elsewhere } from "../page/Elsewhere.tsx";
import { useTitle } from "../page/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Copy } from "../ui/Copy.tsx";
import { Empty } from "../ui/Empty.tsx";
import { Textarea } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { Markdown } from "../ui/Markdown.tsx";
import { Notice } from "../ui/Notice.tsx";
import { complete, explain, type Turn } from "./chat.ts";
import { paperContext, runContext } from "./context.ts";
import { keepChat, recallChat } from "./kept.ts";

export function ChatPage() {
  useTitle("Chat");
  if (useMissing("chat")) {
    return (
      <div className="mx-auto w-full max-w-3xl px-4 pt-6 md:px-8 md:pt-8">
        <h1 className="mb-4">Chat</h1>
        <Empty icon={<Bot />} title="Chat isn't set up on this server">
          Its operator can connect a model with <code>--ai-base-url</code> and <code>--ai-model</code>.
        </Empty>
      </div>
    );
  }
  return <Conversation />;
}

function Conversation() {
  const { api, team } = useTeam();
  const context = useContext();
  const [turns, setTurns] = useState<Turn[]>(() => recallChat(team));
  const [draft, setDraft] = useState("");
  const [error, setError] = useState<unknown>(null);
  const stop = useRef<AbortController | null>(null);
  const [busy, setBusy] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => keepChat(team, turns), [team, turns]);
  useEffect(() => () => stop.current?.abort(), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new text scrolls into view
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" }); // a promise in new browsers, which no effect may return
  }, [turns.length, busy]);

  const send = async (content: string) => {
    const asked: Turn[] = [...turns, { role: "user", content }];
    setTurns(asked);
    setDraft("");
    setError(null);
    setBusy(true);
    const asking = new AbortController();
    stop.current = asking;
    let answer = "";
    try {
      const system: Turn[] = context.text ? [{ role: "system", content: context.text }] : [];
      for await (const piece of complete(api, [...system, ...asked], asking.signal)) {
        answer += piece;
        setTurns([...asked, { role: "assistant", content: answer }]);
      }
    } catch (thrown) {
      if (!asking.signal.aborted) setError(thrown);
    } finally {
      if (stop.current === asking) setBusy(false);
    }
  };

  return (
    <div className="mx-auto flex w-full max-w-3xl flex-1 flex-col px-4 pt-6 md:px-8 md:pt-8">
      <header className="mb-4 flex items-start justify-between gap-3">
        <div>
          <h1>Chat</h1>
          <p className="mt-1 text-sm text-muted">Free for members. Answers can be wrong: check them.</p>
        </div>
        {turns.length > 0 && (
          <Button
            size="sm"
            icon={<Plus className="size-4" aria-hidden />}
            onClick={() => {
              stop.current?.abort();
              setTurns([]);
              setError(null);
            }}
          >
            New chat
          </Button>
        )}
      </header>
      {context.missing && <Elsewhere key={context.missing} id={context.missing} />}
      {context.label && (
        <Notice
          tone="info"
          className="mb-4"
          actions={
            <Link to="/chat" className="text-[13px] text-accent underline">
              Remove
            </Link>
          }
        >
          Context: {context.label}.
        </Notice>
      )}
      <div className="flex-1 space-y-5 pb-6" role="log" aria-label="Conversation" aria-busy={busy}>
        {turns.length === 0 && <Suggestions ask={(text) => void send(text)} about={context.label} />}
        {turns.map((turn, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: turns are only added
          <Message key={at} turn={turn} />
        ))}
        {busy && turns.at(-1)?.role === "user" && <p className="text-sm text-muted">Thinking…</p>}
        {error !== null && (
          <Notice
            tone="danger"
            title="No answer"
            actions={
              <Button
                size="sm"
                onClick={() => {
                  const last = turns.findLast((turn) => turn.role === "user");
                  setTurns(
                    turns.slice(
                      0,
                      turns.findLastIndex((turn) => turn.role === "user"),
                    ),
                  );
                  if (last) setDraft(last.content);
                  setError(null);
                }}
              >
                Edit and try again
              </Button>
            }
          >
            {explain(error)}
          </Notice>
        )}
        <div ref={end} />
      </div>
      <Form
        className="sticky bottom-0 flex items-end gap-2 border-t bg-bg py-3"
        onSubmit={() => {
          if (!busy && draft.trim()) void send(draft.trim());
        }}
      >
        <Textarea
          aria-label="Your question"
          rows={Math.min(8, Math.max(2, draft.split("\n").length))}
          placeholder="Ask about a method, an error, a command…"
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
              event.preventDefault();
              event.currentTarget.form?.requestSubmit();
            }
          }}
        />
        {busy ? (
          <Button icon={<CircleStop className="size-4" aria-hidden />} onClick={() => stop.current?.abort()}>
            Stop
          </Button>
        ) : (
          <Button
            type="submit"
            look="primary"
            icon={<Send className="size-4" aria-hidden />}
            disabledReason={draft.trim() ? null : "Type a question first."}
          >
            Send
          </Button>
        )}
      </Form>
    </div>
  );
}

function Message({ turn }: { turn: Turn }) {
  const mine = turn.role === "user";
  const Icon = mine ? UserRound : Bot;
  return (
    <div className="flex gap-3">
      <span className="mt-0.5 grid size-7 shrink-0 place-items-center rounded-full bg-sunken text-muted">
        <Icon className="size-4" aria-label={mine ? "You" : "The model"} />
      </span>
      <div className="min-w-0 flex-1">
        {mine ? (
          <p className="font-medium whitespace-pre-wrap break-words">{turn.content}</p>
        ) : (
          <Markdown source={turn.content} />
        )}
        {!mine && turn.content && <Copy text={turn.content} label="Copy answer" />}
      </div>
    </div>
  );
}

function Suggestions({ ask: send, about }: { ask: (text: string) => void; about: string | null }) {
  const ideas = about
    ? ["What went wrong, and how do I fix it?", "Summarize it in five sentences.", "What should I check first?"]
    : [
        "Write a bash command that counts reads in a gzipped FASTQ file.",
        "How do I pick the memory for an alignment step?",
        "Explain scatter and gather in a workflow.",
      ];
  return (
    <Empty
      icon={<Bot />}
      title="Ask about your work"
      actions={ideas.map((idea) => (
        <Button key={idea} size="sm" className="h-auto! py-1.5 whitespace-normal!" onClick={() => send(idea)}>
          {idea}
        </Button>
      ))}
    >
      Ask about methods, error messages and commands. Open chat from a run or a paper to include it as context.
    </Empty>
  );
}

interface Context {
  text: string | null;
  label: string | null;
  /** What this team does not have. */
  missing: string | null;
}

/** useContext is what the model is told beforehand: a run or a paper that the address names. */
function useContext(): Context {
  const { run, paper } = useSearch({ from: "/inside/chat" });
  const aRun = useQuery({
    queryKey: ["run", run],
    queryFn: ({ client }) => bare(apiOf(client).GET("/api/runs/{id}", { params: { path: { id: run ?? "" } } })),
    enabled: Boolean(run),
  });
  const aPaper = useQuery({
    queryKey: ["analysis", paper],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/ai/status", { params: { query: { id: paper ?? "" } } })),
    enabled: Boolean(paper),
  });
  const missing = [aRun, aPaper].findIndex(({ error }) => isFailure(error) && error.status === 404);
  if (aRun.data) return { text: runContext(aRun.data), label: `the run of ${aRun.data.workflowName}`, missing: null };
  if (aPaper.data?.result) {
    const { title } = aPaper.data.result.paper;
    return { text: paperContext(aPaper.data.result), label: title ?? "the paper", missing: null };
  }
  return { text: null, label: null, missing: [run, paper][missing] ?? null };
}
