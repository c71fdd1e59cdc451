import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Api, ask, type once } from "../api/client.ts";
import { toast } from "../ui/toast.ts";

const withID = (id: string) => ({ params: { path: { id } } });

export const grant = (api: Api, id: string, credits: number, reason: string, key: ReturnType<typeof once>) =>
  ask(
    api.POST("/api/operator/teams/{id}/grant", {
      params: { path: { id }, header: key },
      body: { credits, ...(reason && { reason }) },
    }),
  );

export const setPlan = (api: Api, id: string, plan: string) =>
  ask(api.POST("/api/operator/teams/{id}/plan", { ...withID(id), body: { plan } }));

export const suspend = (api: Api, id: string, suspended: boolean) =>
  ask(api.POST("/api/operator/teams/{id}/suspend", { ...withID(id), body: { suspended } }));

export const drain = (api: Api, worker: string, draining: boolean) =>
  ask(api.POST("/api/operator/workers/drain", { body: { worker, draining } }));

export const endRun = (api: Api, id: string) =>
  ask(api.POST("/api/operator/runs/{id}/end", { params: { path: { id } } }));

export const testMail = (api: Api) => ask(api.POST("/api/operator/mail/test"));

export const suspendAccount = (api: Api, id: string) => ask(api.POST("/api/operator/users/{id}/suspend", withID(id)));

export const resumeAccount = (api: Api, id: string) => ask(api.POST("/api/operator/users/{id}/resume", withID(id)));

export const resetSecondFactor = (api: Api, id: string) =>
  ask(api.POST("/api/operator/users/{id}/reset-second-factor", withID(id)));

export const deleteAccount = (api: Api, id: string) => ask(api.DELETE("/api/operator/users/{id}", withID(id)));

/** useAction does something and then shows the installation as it is after it. */
export function useAction<T>(act: (what: T) => Promise<unknown>, done: string, then?: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: () => {
      toast.ok(done);
      then?.();
    },
    onSettled: () => client.invalidateQueries({ queryKey: ["operator"] }),
  });
}
