UPDATE workflows SET kind = 'snakemake'; UPDATE workers SET launches = 'nextflow snakemake';
