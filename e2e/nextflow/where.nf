// Prints where Nextflow would report this run to. Nextflow decides that itself, before it
// hands over to its plugin nf-tower; in tests an empty plugin takes that one's place.
println "reports to ${nextflow.Global.session.config.tower?.endpoint}"
workflow { }
