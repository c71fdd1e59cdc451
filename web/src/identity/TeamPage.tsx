import { Page } from "../app/Page.tsx";

export function TeamPage() {
  return <Page title="Team">{null}</Page>;
}
