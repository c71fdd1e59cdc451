import { Page } from "../app/Page.tsx";

export function AccountPage() {
  return <Page title="Account">{null}</Page>;
}
