package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// watchers follow a run each, from before it begins.
type watchers struct {
	mu     sync.Mutex
	heard  map[string]time.Time // when the end of a run came
	failed map[string]error
	all    sync.WaitGroup
}

// watch opens the streams of runs from all over the queue.
func (in *installation) watch(ids []submission) (*watchers, error) {
	w := &watchers{heard: map[string]time.Time{}, failed: map[string]error{}}
	n := min(in.s.streams, len(ids))
	open := make(chan error, n)
	turn := make(chan struct{}, 50)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	for i := range n {
		one := ids[i*len(ids)/n]
		turn <- struct{}{}
		w.all.Add(1)
		go func() {
			defer w.all.Done()
			r, err := http.NewRequest(http.MethodGet, in.servers[i%len(in.servers)].base+"/api/runs/"+one.run+"/stream", nil)
			if err != nil {
				open <- err
				return
			}
			r.Header.Set("Authorization", "Bearer "+in.teams[one.team].token)
			r.Header.Set("X-Forwarded-For", in.teams[one.team].address)
			resp, err := client.Do(r)
			<-turn
			if err == nil && resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("a stream was answered %s", resp.Status)
			}
			open <- err
			if err != nil {
				return
			}
			defer resp.Body.Close()
			w.follow(one.run, resp)
		}()
	}
	for range n {
		if err := <-open; err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *watchers) follow(run string, resp *http.Response) {
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"type":"done"`) {
			now := time.Now()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.heard[run] = now
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[run] = lines.Err()
}

// report compares when ends were heard with when they were written down.
func (w *watchers) report(in *installation) {
	w.all.Wait()
	rows, err := in.query("SELECT /* scaleload */ id, finished_at FROM runs")
	if err != nil {
		fmt.Println("no times of runs:", err)
	}
	var late []float64
	for _, r := range rows {
		if at, heard := w.heard[r[0]]; heard {
			late = append(late, float64(at.UnixMicro())/1000-number(r[1])/1000)
		}
	}
	slices.Sort(late)
	if len(late) > 0 {
		fmt.Printf("events: the end of a run came to %d clients after p50 %.0f ms, p99 %.0f ms, at most %.0f ms; %d heard of none\n",
			len(late), late[len(late)/2], late[len(late)*99/100], late[len(late)-1], len(w.failed))
	}
}

// writers type meanwhile.
type writers struct {
	cmd  *exec.Cmd
	done chan []byte
}

func (in *installation) typing() *writers {
	t := &writers{done: make(chan []byte, 1)}
	if in.s.rooms == 0 || in.s.editorload == "" {
		close(t.done)
		return t
	}
	args := []string{"-people", "2", "-rate", "2", "-for", "15s"}
	for i := range in.s.rooms {
		who := in.teams[i%len(in.teams)]
		var w struct{ Data struct{ ID string } }
		var room struct{ Data struct{ Token, Room string } }
		err := in.post(who, i, "/api/workflows", `{"name":"typed in"}`, &w)
		if err == nil {
			err = in.post(who, i, "/api/collab/token", fmt.Sprintf(`{"workflowId":%q}`, w.Data.ID), &room)
		}
		if err != nil {
			fmt.Println("no room:", err)
			close(t.done)
			return t
		}
		args = append(args, "ws"+strings.TrimPrefix(in.servers[i%len(in.servers)].base, "http")+"/editor/"+room.Data.Room+"?token="+room.Data.Token)
	}
	t.cmd = exec.Command(in.s.editorload, args...)
	t.cmd.Stderr = os.Stderr
	go func() {
		out, _ := t.cmd.Output()
		t.done <- out
	}()
	return t
}

func (t *writers) report() {
	var m map[string]any
	if out := <-t.done; json.Unmarshal(out, &m) == nil {
		fmt.Printf("editors: %.0f changes came to the other person, p50 %.1f ms, p99 %.1f ms\n", m["relays"], m["p50_ms"], m["p99_ms"])
	}
}
