package main

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

func TestTheEndOfAContextEndsWhatACommandHasStarted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, "sh", "-c", `sh -c "echo; exec sleep 600"; true`)
	interruptAll(cmd)
	cmd.WaitDelay = time.Minute
	output, err := cmd.StdoutPipe() // both hold it
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := output.Read(make([]byte, 1)); err != nil { // both shells run
		t.Fatal(err)
	}
	cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = output.Read(make([]byte, 1)) // until nobody holds it
		_ = cmd.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("sleep still runs after 20 s")
	}
}
