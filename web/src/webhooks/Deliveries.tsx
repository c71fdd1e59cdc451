import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useApi } from "../api/team.ts";
import { Answer } from "../page/Answer.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { plural } from "../ui/format.ts";
import type { Tone } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Time } from "../ui/Time.tsx";
import { toast } from "../ui/toast.ts";
import { type Delivery, deliveriesQuery, sendAgain, type Webhook } from "./queries.ts";

const tones: Record<Delivery["status"], Tone> = { pending: "info", delivered: "ok", failed: "danger" };

/** Deliveries is what was sent to a webhook, and the way to send it again. */
export function Deliveries({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const api = useApi();
  const deliveries = useQuery(deliveriesQuery(webhook.id));
  const client = useQueryClient();
  const again = useMutation({
    mutationFn: (id: string) => sendAgain(api, webhook.id, id),
    onSuccess: () => toast.ok("Sending again"),
    onSettled: () => client.invalidateQueries({ queryKey: deliveriesQuery(webhook.id).queryKey }),
  });
  return (
    <Dialog wide open onOpenChange={(open) => !open && onClose()} title="Deliveries" description={webhook.url}>
      <Answer query={deliveries} rows={4}>
        {(list) =>
          list.length === 0 ? (
            <p className="text-sm text-muted">No deliveries yet.</p>
          ) : (
            <ul className="divide-y rounded-lg border">
              {list.map((delivery) => (
                <li key={delivery.id} className="px-3 py-2 text-sm">
                  <div className="flex flex-wrap items-center justify-between gap-2">
                    <span>
                      <Pill tone={tones[delivery.status]}>{delivery.status}</Pill> {delivery.type},{" "}
                      <Time at={delivery.createdAt} />, {plural(delivery.attempts, "attempt")}
                      {delivery.responseStatus !== null && `, status ${delivery.responseStatus}`}
                    </span>
                    <Button
                      size="sm"
                      busy={again.isPending && again.variables === delivery.id}
                      onClick={() => again.mutate(delivery.id)}
                    >
                      Send again
                    </Button>
                  </div>
                  {delivery.error && <p className="text-[13px] text-muted">{delivery.error}</p>}
                  <details className="mt-1 text-[13px]">
                    <summary className="w-fit cursor-pointer text-muted">Request and response</summary>
                    <pre tabIndex={0} className="mt-1 max-h-40 overflow-auto rounded-md bg-sunken p-2 text-xs">
                      {JSON.stringify(delivery.payload, null, 2)}
                      {delivery.responseBody && `\n\n${delivery.responseBody}`}
                    </pre>
                  </details>
                </li>
              ))}
            </ul>
          )
        }
      </Answer>
    </Dialog>
  );
}
