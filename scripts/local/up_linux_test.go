package main

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system/systemtest"
)

// TestCtrlCEndsMakeUpWithStatus0 types Ctrl-C into a terminal in which make up runs.
func TestCtrlCEndsMakeUpWithStatus0(t *testing.T) {
	t.Parallel()
	lambdatest.FullOnly(t)
	dynamodbtest.Locate(t)
	must(t, lambdatest.OpenSources(t.Context(), "scripts/local"))
	keyboard, screen := systemtest.Terminal(t)
	cmd := newReader(t).command(t.Context(), "make", "up")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	if err := screen.Close(); err != nil { // so that reading ends with make
		t.Error(err)
	}
	shown := &awaited{text: []byte("Ctrl-C ends everything"), seen: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(shown, keyboard)
		ended <- err
	}()
	select {
	case <-shown.seen:
	case <-time.After(5 * time.Minute):
		t.Error("make up is not ready after 5 minutes")
	}
	if _, err := keyboard.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil && !errors.Is(err, syscall.EIO) { // a terminal without a reader
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || strings.Contains(shown.String(), "Error") {
		t.Errorf("make up ended with %v and printed\n%s\nwant status 0 and no Error", err, shown.String())
	}
	if text := shown.String(); !strings.Contains(text, "packages") && !strings.Contains(text, "Compiling") {
		t.Errorf("make up printed\n%s\nwant that it compiles", text)
	}
}
