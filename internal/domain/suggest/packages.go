package suggest

import "cmp"

// names of one package.
type names struct{ pip, conda string }

// python is the package that a module comes with. Most are called like their module.
func python(module string) names {
	n := modules[module]
	n.pip = cmp.Or(n.pip, module)
	return names{n.pip, cmp.Or(n.conda, n.pip)}
}

// modules are those whose package has another name.
var modules = map[string]names{
	"Bio":           {pip: "biopython"},
	"Crypto":        {pip: "pycryptodome"},
	"MySQLdb":       {pip: "mysqlclient"},
	"OpenSSL":       {pip: "pyOpenSSL", conda: "pyopenssl"},
	"PIL":           {pip: "pillow"},
	"attr":          {pip: "attrs"},
	"bs4":           {pip: "beautifulsoup4"},
	"cv2":           {pip: "opencv-python-headless", conda: "opencv"},
	"dateutil":      {pip: "python-dateutil"},
	"docx":          {pip: "python-docx"},
	"dotenv":        {pip: "python-dotenv"},
	"fitz":          {pip: "PyMuPDF", conda: "pymupdf"},
	"git":           {pip: "GitPython", conda: "gitpython"},
	"igraph":        {pip: "igraph", conda: "python-igraph"},
	"magic":         {pip: "python-magic"},
	"matplotlib":    {pip: "matplotlib", conda: "matplotlib-base"},
	"pkg_resources": {pip: "setuptools"},
	"psycopg2":      {pip: "psycopg2-binary", conda: "psycopg2"},
	"pymc3":         {pip: "pymc3"},
	"rdkit":         {pip: "rdkit"},
	"skbio":         {pip: "scikit-bio"},
	"skimage":       {pip: "scikit-image"},
	"sklearn":       {pip: "scikit-learn"},
	"tables":        {pip: "tables", conda: "pytables"},
	"torch":         {pip: "torch", conda: "pytorch"},
	"umap":          {pip: "umap-learn"},
	"usearch":       {pip: "usearch"},
	"vcf":           {pip: "PyVCF3", conda: "pyvcf3"},
	"yaml":          {pip: "PyYAML", conda: "pyyaml"},
	"zmq":           {pip: "pyzmq"},
}

// bioconductor are packages of R that come from there.
var bioconductor = map[string]bool{
	"Biobase": true, "BiocGenerics": true, "BiocParallel": true, "Biostrings": true, "ComplexHeatmap": true, "DESeq2": true, "GenomicFeatures": true,
	"GenomicRanges": true, "IRanges": true, "Rsamtools": true, "S4Vectors": true, "SingleCellExperiment": true, "SummarizedExperiment": true, "biomaRt": true,
	"clusterProfiler": true, "edgeR": true, "fgsea": true, "limma": true, "phyloseq": true, "rtracklayer": true, "scater": true, "scran": true, "tximport": true,
}

// condaPackages has the package of each program that scientists ask for most.
var condaPackages = map[string]string{
	"Rscript": "r-base", "R": "r-base", "STAR": "star", "abricate": "abricate", "bamtools": "bamtools", "bcftools": "bcftools", "bedtools": "bedtools",
	"blastn": "blast", "blastp": "blast", "makeblastdb": "blast", "bowtie": "bowtie", "bowtie2": "bowtie2", "bwa": "bwa", "bwa-mem2": "bwa-mem2",
	"cutadapt": "cutadapt", "deeptools": "deeptools", "diamond": "diamond", "dot": "graphviz", "fastp": "fastp", "fastqc": "fastqc", "featureCounts": "subread",
	"ffmpeg": "ffmpeg", "freebayes": "freebayes", "gatk": "gatk4", "gnuplot": "gnuplot", "hisat2": "hisat2", "hmmsearch": "hmmer", "iqtree": "iqtree", "java": "openjdk",
	"jq": "jq", "julia": "julia", "kallisto": "kallisto", "kraken2": "kraken2", "macs3": "macs3", "mafft": "mafft", "minimap2": "minimap2", "mosdepth": "mosdepth",
	"multiqc": "multiqc", "muscle": "muscle", "node": "nodejs", "pandoc": "pandoc", "parallel": "parallel", "perl": "perl", "picard": "picard", "pigz": "pigz",
	"plink2": "plink2", "prodigal": "prodigal", "prokka": "prokka", "pymol": "pymol-open-source", "python": "python", "python3": "python", "quast": "quast",
	"raxml-ng": "raxml-ng", "sambamba": "sambamba", "salmon": "salmon", "samtools": "samtools", "seqkit": "seqkit", "seqtk": "seqtk", "spades.py": "spades",
	"sra-tools": "sra-tools", "fasterq-dump": "sra-tools", "prefetch": "sra-tools", "tabix": "htslib", "bgzip": "htslib", "tree": "tree", "trimmomatic": "trimmomatic",
	"vcftools": "vcftools", "zstd": "zstd",
}
