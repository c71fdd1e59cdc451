import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ExternalLink, FileDown } from "lucide-react";
import { useState } from "react";
import { useApi } from "../api/team.ts";
import { useMissing, useWhyNot } from "../identity/queries.ts";
import { Unverified } from "../identity/Unverified.tsx";
import { Answer } from "../page/Answer.tsx";
import { Page, Section } from "../page/Page.tsx";
import { Problem } from "../page/Problem.tsx";
import { Button } from "../ui/Button.tsx";
import { classes } from "../ui/classes.ts";
import { count, day, money } from "../ui/format.ts";
import { Notice } from "../ui/Notice.tsx";
import { Pill } from "../ui/Pill.tsx";
import { Table, Td, Th } from "../ui/Table.tsx";
import { Balance } from "./Balance.tsx";
import { Budgets } from "./Budgets.tsx";
import { Chart } from "./Chart.tsx";
import { Costs } from "./Costs.tsx";
import { runway } from "./model.ts";
import { Quotas } from "./Quotas.tsx";
import { creditsQuery, type Days, invoicesQuery, packagesQuery, startTopUp, usageQuery } from "./queries.ts";
import { Usage } from "./Usage.tsx";

export function BillingPage() {
  if (useMissing("billing")) {
    return (
      <Page title="Quotas" intro="What the team may use. Nothing is charged on this server.">
        <Quotas />
      </Page>
    );
  }
  return <WithPrices />;
}

function WithPrices() {
  const balance = useQuery(creditsQuery);
  const recent = useQuery(usageQuery(30));
  const whyNot = useWhyNot()("manage billing");
  return (
    <Page title="Billing" intro="Runs are billed per second, storage per GB and month. Monthly credits are used first.">
      {balance.data?.monthlyCredits === 0 && (
        <Unverified>Your team gets its monthly credits once your address is confirmed.</Unverified>
      )}
      <div className="mb-8">
        <Answer query={balance} rows={2}>
          {(credits) => (
            <Balance balance={credits} runway={recent.data ? runway(credits, recent.data.series, new Date()) : null} />
          )}
        </Answer>
      </div>
      <Quotas />
      <Daily />
      <Costs />
      <Budgets />
      <Section title="Add credits" intro="Top-up credits don't expire. You pay on the payment provider's page.">
        {whyNot ? <Notice>{whyNot}</Notice> : <Packages />}
      </Section>
      <Usage />
      <Section title="Invoices">{whyNot ? <Notice>{whyNot}</Notice> : <Invoices />}</Section>
    </Page>
  );
}

const ranges: Days[] = [7, 30, 90, 180];

function Daily() {
  const search = useSearch({ from: "/inside/billing" });
  const navigate = useNavigate({ from: "/billing" });
  const days = Number(search.days ?? 30) as Days;
  const usage = useQuery(usageQuery(days));
  return (
    <Section
      title="Daily usage"
      actions={
        <fieldset className="inline-flex rounded-lg border bg-surface p-0.5">
          <legend className="sr-only">Range</legend>
          {ranges.map((range) => (
            <label
              key={range}
              className={classes(
                "cursor-pointer rounded-md px-2.5 py-1 text-[13px] has-focus-visible:outline-2 has-focus-visible:outline-accent",
                range === days ? "bg-accent-soft font-medium text-accent" : "text-muted",
              )}
            >
              <input
                type="radio"
                name="range"
                className="sr-only"
                checked={range === days}
                onChange={() => void navigate({ search: { days: String(range) as "7" }, replace: true })}
              />
              {range} days
            </label>
          ))}
        </fieldset>
      }
    >
      <div className="rounded-xl border bg-surface p-5">
        <Answer query={usage} rows={3}>
          {(data) => (
            <>
              <Chart series={data.series} />
              <p className="mt-3 border-t pt-3 text-sm text-muted">
                In this period: {count(data.ai.requests)} chat requests with{" "}
                {count(data.ai.promptTokens + data.ai.completionTokens)} tokens and {count(data.ai.analyses)} paper
                analyses, at no cost.
              </p>
            </>
          )}
        </Answer>
      </div>
    </Section>
  );
}

function Packages() {
  const api = useApi();
  const packages = useQuery(packagesQuery);
  const buy = useMutation({
    mutationFn: (packageIndex: number) => startTopUp(api, packageIndex),
    onSuccess: ({ url }) => location.assign(url),
    meta: { shown: true },
  });
  return (
    <Answer query={packages} rows={1}>
      {(list) => (
        <>
          <ul className="grid gap-3 sm:grid-cols-3">
            {list.map((each) => (
              <li key={each.index} className="flex flex-col gap-3 rounded-xl border bg-surface p-4">
                <div>
                  <h3 className="text-lg">{each.name}</h3>
                  <p className="text-sm text-muted">
                    {money(each.amount, each.currency)} ·{" "}
                    {money(Math.round((each.amount / each.credits) * 1000), each.currency)} per 1,000
                  </p>
                </div>
                <Button
                  look="primary"
                  icon={<ExternalLink className="size-4" aria-hidden />}
                  busy={buy.isPending && buy.variables === each.index}
                  onClick={() => buy.mutate(each.index)}
                >
                  Buy for {money(each.amount, each.currency)}
                </Button>
              </li>
            ))}
          </ul>
          {buy.error && (
            <div className="mt-3">
              <Problem title="Couldn't start the checkout" error={buy.error} />
            </div>
          )}
        </>
      )}
    </Answer>
  );
}

function Invoices() {
  const invoices = useQuery(invoicesQuery);
  const [all, setAll] = useState(false);
  return (
    <Answer query={invoices} rows={2}>
      {(list) =>
        list.length === 0 ? (
          <p className="text-sm text-muted">No invoices yet. One appears with each payment.</p>
        ) : (
          <>
            <Table
              label="Invoices"
              head={
                <>
                  <Th>Number</Th>
                  <Th>Date</Th>
                  <Th>For</Th>
                  <Th>State</Th>
                  <Th className="text-right">Amount</Th>
                  <Th>
                    <span className="sr-only">Open</span>
                  </Th>
                </>
              }
            >
              {(all ? list : list.slice(0, 6)).map((invoice) => (
                <tr key={invoice.id}>
                  <Td className="whitespace-nowrap">{invoice.number}</Td>
                  <Td className="whitespace-nowrap">{day(invoice.createdAt)}</Td>
                  <Td>{invoice.description}</Td>
                  <Td>
                    <Pill tone={invoice.status === "paid" ? "ok" : "warn"}>{invoice.status}</Pill>
                  </Td>
                  <Td className="tabular text-right whitespace-nowrap">{money(invoice.amount, invoice.currency)}</Td>
                  <Td className="whitespace-nowrap">
                    <div className="flex justify-end gap-3 text-accent">
                      {invoice.hostedUrl && (
                        <a
                          href={invoice.hostedUrl}
                          className="hover:underline"
                          aria-label={`View invoice ${invoice.number}`}
                        >
                          View
                        </a>
                      )}
                      {invoice.pdfUrl && (
                        <a
                          href={invoice.pdfUrl}
                          className="inline-flex items-center gap-1 hover:underline"
                          aria-label={`Invoice ${invoice.number} as PDF`}
                        >
                          <FileDown className="size-4" aria-hidden /> PDF
                        </a>
                      )}
                    </div>
                  </Td>
                </tr>
              ))}
            </Table>
            {!all && list.length > 6 && (
              <Button className="mt-3" onClick={() => setAll(true)}>
                Show all {list.length}
              </Button>
            )}
          </>
        )
      }
    </Answer>
  );
}
