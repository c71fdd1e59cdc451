import { Page } from "../app/Page.tsx";

export function BillingPage() {
  return <Page title="Billing">{null}</Page>;
}
