/** runTitle is how a run is called: "align #12", or "Stricter trimming (align #12)". */
export function runTitle(run: { workflowName: string; number: number; name: string | null }): string {
  const numbered = `${run.workflowName} #${run.number}`;
  return run.name ? `${run.name} (${numbered})` : numbered;
}
