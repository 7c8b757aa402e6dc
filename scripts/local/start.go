package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/local/system"
)

// folder holds what a command builds and writes. `local run` and `local up` have one
// each, so that one does not replace the binary and the log of the other.
type folder string

const (
	runFolder folder = "build/run"
	upFolder  folder = "build/up"
)

func (f folder) binary(function string) string { return filepath.Join(string(f), function) }
func (f folder) log() string                   { return filepath.Join(string(f), "function.log") }
func (f folder) env() string                   { return filepath.Join(string(f), "env") }

type local struct {
	*system.System

	folder folder
	log    *system.Log
	file   *os.File
	tally  *tally
}

// Close ends the system, which writes to the file until then, and closes the file.
func (l *local) Close() error { return errors.Join(l.System.Close(), l.file.Close()) }

// start compiles the functions and starts the system around them. Their log goes to
// folder.log(), and to the options' output if there is one, otherwise to local.log.
func start(ctx context.Context, f folder, engine dynamodbtest.Location, o system.Options) (*local, error) {
	fmt.Println(
		"Compiling the functions and starting a queue, an engine and a pretend Stripe on 127.0.0.1 ...",
	)
	file, err := compile(ctx, f)
	if err != nil {
		return nil, err
	}
	log := &system.Log{To: file}
	o.Binary, o.Webhook, o.Reconcile = f.binary("order"), f.binary("webhook"), f.binary("reconcile")
	o.Refund = f.binary("refund")
	o.Publish, o.Intake, o.Receipt = f.binary("publish"), f.binary("intake"), f.binary("receipt")
	o.Engine = engine
	if o.Output == nil {
		o.Output = log
	} else { // it runs for long: the file is enough
		o.Output = io.MultiWriter(file, o.Output)
	}
	t := &tally{deliveries: map[string]int{}}
	if o.Observe == nil {
		o.Observe = t.observe
	}
	s, err := system.Start(ctx, o)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &local{s, f, log, file, t}, nil
}

// compile builds the functions, and says every ten seconds that it does. It returns the
// file of their log. The first one compiles what all of them share; then the others are
// built at the same time.
func compile(ctx context.Context, f folder) (log *os.File, err error) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		for began := time.Now(); ; {
			select {
			case <-time.After(10 * time.Second):
				fmt.Fprintf(os.Stderr, "compiling the functions: %.0f s\n", time.Since(began).Seconds())
			case <-done:
				return
			}
		}
	}()
	build := func(function string) error {
		return lambdatest.Build(ctx, "./functions/"+function, f.binary(function))
	}
	functions := []string{"order", "refund", "webhook", "reconcile", "publish", "intake", "receipt"}
	if err := build(functions[0]); err != nil {
		return nil, err
	}
	errs := make([]error, len(functions))
	var building sync.WaitGroup
	for i, function := range functions[1:] {
		building.Go(func() { errs[i] = build(function) })
	}
	building.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return os.Create(filepath.Clean(f.log()))
}
