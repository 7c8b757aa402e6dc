// Command stripemock sends every request that adapters/stripe can make to stripe-mock, which checks parameters against
// Stripe's published OpenAPI description, and fails on the first that it refuses. It says nothing of behavior: stripe-mock
// keeps no state and answers with fixtures.
//
// It installs stripe-mock into a temporary folder, runs it on 127.0.0.1 and ends it. It needs a Go module proxy, so it is no
// part of go test.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"orderonce/adapters/stripe"
	"orderonce/domain/order"
)

const module = "github.com/stripe/stripe-mock@v0.203.0"

func main() {
	k := kong.Parse(&struct{}{}, kong.Name("stripemock"), kong.UsageOnError(), kong.Description(
		"Send every request that adapters/stripe can make to stripe-mock, which checks parameters against Stripe's published OpenAPI "+
			"description, and fail on the first that it refuses. It installs "+module+" from the Go module proxy into a temporary "+
			"folder, runs it on 127.0.0.1 and ends it."))
	k.FatalIfErrorf(run(context.Background(), os.Stdout))
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "stripemock")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := install(ctx, dir); err != nil {
		return err
	}
	url, stop, err := start(ctx, filepath.Join(dir, "stripe-mock"))
	if err != nil {
		return err
	}
	return errors.Join(sendAll(ctx, url, out), stop())
}

func install(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "install", module)
	cmd.Env = append(os.Environ(), "GOBIN="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go install %s: %w", module, err)
	}
	return nil
}

// start runs stripe-mock on two free ports, because without an address for HTTPS too it takes one on every interface, and
// returns the URL that it prints for HTTP.
func start(ctx context.Context, program string) (url string, stop func() error, err error) {
	cmd := exec.CommandContext(ctx, program, "-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0")
	printed, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it says "killed"
		return err
	}
	lines := bufio.NewScanner(printed)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "Listening for HTTP at address: "); ok {
			go func() { _, _ = io.Copy(io.Discard, printed) }()
			return "http://" + address, stop, nil
		}
	}
	return "", nil, errors.Join(errors.New("stripe-mock ended without an address"), stop())
}

// sendAll makes one order in each currency that differs in how amounts are written, and does all that can be done with it.
func sendAll(ctx context.Context, url string, out io.Writer) error {
	const scope = order.Scope("stripemock")
	p := stripe.New(stripe.Options{Key: "sk_test_pretend", BaseURL: url, Scope: scope})
	for _, total := range []order.Money{
		{Amount: 1, Currency: "usd"},
		{Amount: order.Currency("eur").Max(), Currency: "eur"},
		{Amount: 500, Currency: "jpy"},
		{Amount: 5120, Currency: "kwd"},
		{Amount: 900, Currency: "isk"},
		{Amount: 1200, Currency: "ugx"},
	} {
		o, err := order.New(order.Draft{
			ID: "ORD-" + string(total.Currency), CustomerID: "CUST-1", Currency: string(total.Currency),
			Lines:   []order.Line{{SKU: "MUG", Quantity: 1, UnitAmount: total.Amount}},
			Payment: order.Payment{Customer: "cus_pretend", Method: "pm_card_visa"},
		})
		if err != nil {
			return err
		}
		intent, err := p.Prepare(ctx, o, order.PrepareKey(scope, o.ID()))
		if err := told(out, "prepare "+total.String(), err); err != nil {
			return err
		}
		_, err = p.Confirm(ctx, intent.ID, order.ConfirmKey(scope, o.ID(), 1))
		if err := told(out, "confirm "+string(intent.ID), err); err != nil {
			return err
		}
		_, err = p.Read(ctx, intent.ID)
		if err := told(out, "read "+string(intent.ID), err); err != nil {
			return err
		}
	}
	return nil
}

func told(out io.Writer, request string, err error) error {
	if err == nil {
		_, err = fmt.Fprintf(out, "ok  %s\n", request)
	}
	return err
}
