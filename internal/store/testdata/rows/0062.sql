UPDATE runs SET launches = 'nextflow';
