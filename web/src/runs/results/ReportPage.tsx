import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { ArrowLeft, Download, FileX } from "lucide-react";
import { Answer } from "../../page/Answer.tsx";
import { useTitle } from "../../page/Page.tsx";
import { buttonClass } from "../../ui/Button.tsx";
import { Empty } from "../../ui/Empty.tsx";
import { outputsQuery } from "../queries.ts";
import { Report } from "./Report.tsx";

/** ReportPage shows one report in the whole window. */
export function ReportPage() {
  const { runId } = useParams({ from: "/inside/runs/$runId/report" });
  const { key } = useSearch({ from: "/inside/runs/$runId/report" });
  const outputs = useQuery(outputsQuery(runId, "", true));
  const found = outputs.data?.find((output) => output.key === key);
  useTitle(found?.name ?? "Report");
  return (
    <div className="flex h-full min-h-[32rem] flex-col p-2 md:p-3">
      <div className="mb-2 flex items-center gap-2">
        <Link to="/runs/$runId" params={{ runId }} className={buttonClass("quiet", "sm")}>
          <ArrowLeft className="size-4" aria-hidden /> Run
        </Link>
        <h1 className="min-w-0 flex-1 truncate text-base!">{found?.name ?? "Report"}</h1>
        {found && (
          <a href={found.url} download={found.name} className={buttonClass("secondary", "sm")}>
            <Download className="size-4" aria-hidden /> Download
          </a>
        )}
      </div>
      <Answer query={outputs} id={runId}>
        {() =>
          found?.reportUrl ? (
            <Report title={found.name} url={found.reportUrl} className="min-h-0 flex-1" />
          ) : (
            <Empty icon={<FileX />} title="Report not found">
              It was deleted, or this run didn't create it.
            </Empty>
          )
        }
      </Answer>
    </div>
  );
}
