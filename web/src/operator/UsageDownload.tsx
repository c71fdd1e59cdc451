/** UsageDownload is the table of what this month used, and the month before. */
export function UsageDownload() {
  const now = new Date();
  const months = [0, 1].map((ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );
  return (
    <p className="flex gap-3 text-sm">
      {months.map((month) => (
        <a key={month} className="underline" href={`/api/operator/usage?month=${month}`} download>
          Usage of {month} (CSV)
        </a>
      ))}
    </p>
  );
}
