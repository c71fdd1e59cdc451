import { Page } from "../app/Page.tsx";

export function ReturnPage() {
  return <Page title="Top-up">{null}</Page>;
}
