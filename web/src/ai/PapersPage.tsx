import { Page } from "../app/Page.tsx";

export function PapersPage() {
  return <Page title="Papers">{null}</Page>;
}
