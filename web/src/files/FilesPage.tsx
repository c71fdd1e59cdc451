import { Page } from "../app/Page.tsx";

export function FilesPage() {
  return <Page title="Files">{null}</Page>;
}
