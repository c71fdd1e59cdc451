import { Page } from "../app/Page.tsx";

export function TemplatesPage() {
  return <Page title="Templates">{null}</Page>;
}
