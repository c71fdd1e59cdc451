import { queryOptions } from "@tanstack/react-query";
import { type Api, ask, type Schemas } from "../api/client.ts";
import { apiOf } from "../api/team.ts";

export type Webhook = Schemas["Webhook"];
export type Delivery = Schemas["WebhookDelivery"];

export const events = [
  "run.queued",
  "run.started",
  "run.completed",
  "run.failed",
  "run.cancelled",
  "run.interrupted",
] as const;

export type Format = Schemas["WebhookFormat"];

/** formats are who reads the messages, as people call them. */
export const formats: Record<Format, string> = {
  standard: "Standard Webhooks (JSON)",
  slack: "Slack",
  teams: "Microsoft Teams",
  mattermost: "Mattermost",
  discord: "Discord",
  custom: "Custom template",
};

/** preview writes a message about a run that failed as a webhook would. */
export function preview(api: Api, format: Format, template: string) {
  return ask(api.POST("/api/webhooks/preview", { body: { format, template: template || null } }));
}

export const webhooksQuery = queryOptions({
  queryKey: ["webhooks"],
  queryFn: ({ client }) => ask(apiOf(client).GET("/api/webhooks")),
});

export const deliveriesQuery = (id: string) =>
  queryOptions({
    queryKey: ["webhooks", id, "deliveries"],
    queryFn: ({ client }) => ask(apiOf(client).GET("/api/webhooks/{id}/deliveries", { params: { path: { id } } })),
    staleTime: 0,
  });

export function createWebhook(api: Api, body: Schemas["NewWebhook"]) {
  return ask(api.POST("/api/webhooks", { body }));
}

export function changeWebhook(api: Api, id: string, body: Schemas["WebhookEdit"]) {
  return ask(api.PATCH("/api/webhooks/{id}", { params: { path: { id } }, body }));
}

export function deleteWebhook(api: Api, id: string) {
  return ask(api.DELETE("/api/webhooks/{id}", { params: { path: { id } } }));
}

export function testWebhook(api: Api, id: string) {
  return ask(api.POST("/api/webhooks/{id}/test", { params: { path: { id } } }));
}

export function sendAgain(api: Api, id: string, deliveryId: string) {
  return ask(api.POST("/api/webhooks/{id}/deliveries/{deliveryId}/send", { params: { path: { id, deliveryId } } }));
}
