// The lines that have a pipeline elsewhere report here.

export const engines = ["nextflow", "snakemake"] as const;
export type Engine = (typeof engines)[number];

export const engineNames: Record<Engine, string> = { nextflow: "Nextflow", snakemake: "Snakemake" };

/** reportingLines are what is typed before the pipeline is started, and the start itself. */
export function reportingLines(engine: Engine, server: string, token: string): string {
  if (engine === "nextflow") {
    return [
      `export TOWER_API_ENDPOINT=${server}/api/nextflow`,
      `export TOWER_ACCESS_TOKEN=${token}`,
      "nextflow run main.nf -with-tower",
    ].join("\n");
  }
  return [
    "pip install snakemake-logger-plugin-millrace",
    `export MILLRACE_SERVER=${server}`,
    `export MILLRACE_TOKEN=${token}`,
    "snakemake --cores 4 --logger millrace",
  ].join("\n");
}
