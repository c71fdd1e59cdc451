import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, once, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Schedule = Schemas["Schedule"];
export type Trigger = Schemas["Trigger"];

export const schedulesQuery = (id: string) =>
  queryOptions({
    queryKey: ["schedules", id],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/workflows/{id}/schedules", { params: { path: { id } } })),
  });

export const triggersQuery = (id: string) =>
  queryOptions({
    queryKey: ["triggers", id],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/workflows/{id}/triggers", { params: { path: { id } } })),
  });

export const revisionsQuery = (id: string) =>
  queryOptions({
    queryKey: ["revisions", id],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/workflows/{id}/revisions", { params: { path: { id } } })),
  });

export function createSchedule(api: Api, id: string, body: Schemas["NewSchedule"]) {
  return ask(api.POST("/api/workflows/{id}/schedules", { params: { path: { id } }, body }));
}

export function changeSchedule(api: Api, { workflowId, id }: Schedule, body: Schemas["ScheduleEdit"]) {
  const path = { id: workflowId, scheduleId: id };
  return ask(api.PATCH("/api/workflows/{id}/schedules/{scheduleId}", { params: { path }, body }));
}

export function deleteSchedule(api: Api, { workflowId, id }: Schedule) {
  const path = { id: workflowId, scheduleId: id };
  return ask(api.DELETE("/api/workflows/{id}/schedules/{scheduleId}", { params: { path } }));
}

export function createTrigger(api: Api, id: string, body: Schemas["NewTrigger"]) {
  return ask(api.POST("/api/workflows/{id}/triggers", { params: { path: { id }, header: once() }, body }));
}

export function deleteTrigger(api: Api, { workflowId, id }: Trigger) {
  const path = { id: workflowId, triggerId: id };
  return ask(api.DELETE("/api/workflows/{id}/triggers/{triggerId}", { params: { path } }));
}

export function confirmRevision(api: Api, id: string, n: number) {
  return ask(api.POST("/api/workflows/{id}/revisions/{n}/confirm", { params: { path: { id, n } } }));
}
