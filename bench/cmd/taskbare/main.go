// Taskbare is the floor of the tasks part: it starts commands through bash,
// two at a time, and records the start and the end of each in a file. An event
// is on disk before its task goes on; events that wait together share a sync.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("taskbare: ")
	kind := flag.String("case", "independent", "independent, chain or fan")
	n := flag.Int("n", 1000, "tasks")
	workers := flag.Int("workers", 2, "tasks at a time")
	dir := flag.String("dir", ".", "where to work")
	flag.Parse()
	j, err := open(filepath.Join(*dir, "events"))
	if err != nil {
		log.Fatal(err)
	}
	do := func(i int, command string) {
		j.tell(i, "started")
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = *dir
		if err := cmd.Run(); err != nil {
			log.Fatal(err)
		}
		j.tell(i, "ended")
	}
	switch *kind {
	case "chain":
		for i := range *n {
			do(i, "true")
		}
	case "fan":
		do(0, "echo seed > a.txt")
		spread(*n, *workers, func(i int) { do(i+1, fmt.Sprintf("cat a.txt > b_%d.txt", i)) })
		do(*n+1, "cat b_*.txt > out.txt")
	default:
		spread(*n, *workers, func(i int) { do(i, "true") })
	}
}

func spread(n, workers int, do func(int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// journal is a file of events with one writer.
type journal struct{ queue chan entry }

type entry struct {
	text string
	safe chan struct{}
}

func open(name string) (*journal, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	j := &journal{make(chan entry, 1024)}
	go func() {
		for first := range j.queue {
			batch := []entry{first}
			for len(j.queue) > 0 {
				batch = append(batch, <-j.queue)
			}
			for _, e := range batch {
				if _, err := f.WriteString(e.text); err != nil {
					log.Fatal(err)
				}
			}
			if err := f.Sync(); err != nil {
				log.Fatal(err)
			}
			for _, e := range batch {
				close(e.safe)
			}
		}
	}()
	return j, nil
}

func (j *journal) tell(task int, what string) {
	e := entry{fmt.Sprintf("{\"at\":%d,\"task\":%d,\"event\":%q}\n", time.Now().UnixNano(), task, what), make(chan struct{})}
	j.queue <- e
	<-e.safe
}
