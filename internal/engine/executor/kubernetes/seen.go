package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
)

// seen is what Kubernetes says of a job. The pod is asked: what a Job says comes
// later, and is less.
func seen(j *job, p *pod) reconciler.JobStatus {
	if p == nil {
		s := withoutPod(j)
		s.Evicted = s.Ended
		return s
	}
	_, evicted := disrupted(p)
	s := reconciler.JobStatus{Node: p.Spec.NodeName, Leaving: j.DeletionTimestamp != nil, Evicted: evicted || p.DeletionTimestamp != nil}
	switch p.Status.Phase {
	case "Succeeded", "Failed":
		s.Ended = true
		s.Reason, s.Detail = whyEnded(p)
		s.Evicted = s.Evicted || s.Reason == executor.Preempted || s.Reason == executor.NodeLost
	case "Pending", "":
		s.Waits = true
		s.Reason, s.Detail = whyWaiting(p)
	case "Unknown":
		s.Detail = "Kubernetes does not reach the node " + p.Spec.NodeName
	}
	if reason, ok := disrupted(p); ok && p.DeletionTimestamp != nil && reason == executor.NodeLost && !s.Ended {
		s.Ended, s.Reason, s.Detail = true, reason, "Kubernetes has given up the node "+p.Spec.NodeName
	}
	return s
}

func withoutPod(j *job) reconciler.JobStatus {
	for _, c := range j.Status.Conditions {
		if (c.Type == "Failed" || c.Type == "Complete") && c.Status == "True" {
			s := reconciler.JobStatus{Ended: true, Reason: executor.Lost, Detail: c.Message}
			if c.Reason == "DeadlineExceeded" {
				s.Reason = executor.TimedOut
			}
			return s
		}
	}
	return reconciler.JobStatus{Waits: true, Reason: executor.Queued, Detail: "waits for Kubernetes to make its pod: do the namespace's quota and pod security allow it?", Leaving: j.DeletionTimestamp != nil}
}

// imageReasons are why an image cannot be had, and startReasons why a container of it
// cannot be made. Either may pass.
var (
	imageReasons = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}
	startReasons = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
)

func whyWaiting(p *pod) (executor.Reason, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return executor.Unschedulable, "waits for a node: " + c.Message
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := c.State.Waiting
		switch {
		case w == nil:
		case slices.Contains(imageReasons, w.Reason):
			return executor.ImageUnavailable, fmt.Sprintf("the image %s could not be pulled: %s", c.Image, strings.TrimSpace(w.Reason+" "+w.Message))
		case slices.Contains(startReasons, w.Reason):
			return executor.StartFailed, fmt.Sprintf("the container could not be created: %s %s", w.Reason, w.Message)
		}
	}
	return executor.Starting, ""
}

func whyEnded(p *pod) (executor.Reason, string) {
	detail := strings.TrimSpace(p.Status.Reason + " " + p.Status.Message)
	switch p.Status.Reason {
	case "DeadlineExceeded":
		return executor.TimedOut, "the pod took longer than it may"
	case "Evicted":
		if strings.Contains(p.Status.Message, "ephemeral") {
			return executor.OutOfDisk, detail
		}
		return executor.Preempted, detail
	case "NodeLost":
		return executor.NodeLost, detail
	case "Preempting", "Shutdown", "NodeShutdown", "Terminated", "NodeAffinity", "UnexpectedAdmissionError":
		return executor.Preempted, detail
	}
	if strings.HasPrefix(p.Status.Reason, "OutOf") { // the node had less than it seemed
		return executor.Preempted, detail
	}
	if reason, ok := disrupted(p); ok {
		return reason, detail
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			if t.Reason == "OOMKilled" {
				return executor.OutOfMemory, ""
			}
			if c.Name == taskContainer && t.ExitCode == shimremote.NoServer {
				return executor.NeverStarted, "its pod reached no server: " + strings.TrimSpace(t.Message)
			}
			return executor.Lost, fmt.Sprintf("the container %s ended with status %d, %s: %s", c.Name, t.ExitCode, t.Reason, strings.TrimSpace(t.Message))
		}
	}
	return executor.Lost, detail
}

// disrupted is why Kubernetes itself ended a pod.
func disrupted(p *pod) (executor.Reason, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type != "DisruptionTarget" || c.Status != "True" {
			continue
		}
		if c.Reason == "DeletionByTaintManager" || c.Reason == "DeletionByPodGC" {
			return executor.NodeLost, true
		}
		return executor.Preempted, true
	}
	return "", false
}
