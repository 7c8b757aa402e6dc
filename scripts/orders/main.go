// Command orders is the operator's tool. It posts orders to the queue, shows and settles
// an order's row, and checks a deployment before and after `make deploy`. It reads the
// same environment names as the function and refuses to charge anybody: only the function
// confirms a payment.
package main

import (
	"context"
	_ "embed"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"orderonce/scripts/orders/cloud"
	"orderonce/scripts/orders/shell"
)

type commands struct {
	Version kong.VersionFlag `help:"Print the version, the commit and its time."`
	JSON    bool             `name:"json" help:"Print results as JSON, one per line, and text for people to standard error."`
	Account cloud.Account    `embed:"" group:"AWS"`

	Post      post          `cmd:"" needs:"QUEUE_URL" help:"Post the messages of a file to their queues, one per line. Needs QUEUE_URL."`
	Show      show          `cmd:"" needs:"ORDERS_TABLE" help:"Show an order's row and history. Needs ORDERS_TABLE."`
	List      list          `cmd:"" needs:"ORDERS_TABLE" help:"List orders: those that wait through an index, others by a scan. Needs ORDERS_TABLE."`
	Refresh   refresh       `cmd:"" needs:"ORDERS_TABLE SCOPE STRIPE_SECRET_KEY" help:"Settle orders as Stripe says. Needs ORDERS_TABLE, SCOPE, STRIPE_SECRET_KEY."`
	Cancel    cancel        `cmd:"" needs:"ORDERS_TABLE SCOPE STRIPE_SECRET_KEY" help:"Close an order, so that nothing can charge it. Needs what refresh needs."`
	Refund    refunds       `cmd:"" help:"Give money of an order back, or end a refund whose result is unknown."`
	Republish republish     `cmd:"" needs:"ORDERS_TABLE SCOPE EVENT_BUS" help:"Send an order's events to the event bus again. Needs ORDERS_TABLE, EVENT_BUS, SCOPE."`
	Receipts  receipts      `cmd:"" needs:"RECEIPTS_TABLE" help:"List doubtful receipts, or those of an order, and resolve one. Needs RECEIPTS_TABLE."`
	Restore   restore       `cmd:"" help:"Bring rows back: all from a damaged table, or one from its PaymentIntent."`
	Watch     watchCommand  `cmd:"" needs:"ORDERS_TABLE QUEUE_URL DEAD_LETTER_QUEUE_URL" help:"Show queues, waiting orders and dead letters as they change."`
	Dead      dead          `cmd:"" needs:"ORDERS_TABLE SCOPE STRIPE_SECRET_KEY QUEUE_URL DEAD_LETTER_QUEUE_URL" name:"dead-letters" help:"List, redrive or discard dead letters, each with a verdict."`
	Erase     erase         `cmd:"" needs:"ORDERS_TABLE" help:"Erase a person: replace a customerId in every row. Needs ORDERS_TABLE."`
	Stock     stock         `cmd:"" needs:"STOCK_TABLE" help:"Show the stock of a SKU, or add units. Needs STOCK_TABLE."`
	Audit     auditTable    `cmd:"" needs:"ORDERS_TABLE SCOPE STRIPE_SECRET_KEY" help:"Compare the table with Stripe, and repair rows. Needs what refresh needs."`
	Verify    verifyHistory `cmd:"" help:"Check the invariants on what happened: rows, Stripe, events and log lines, live or from files."`
	Check     check         `cmd:"" help:"List what make deploy needs, and what is missing on this machine."`
	Smoke     smoke         `cmd:"" needs:"ORDERS_TABLE SCOPE STRIPE_SECRET_KEY QUEUE_URL DEAD_LETTER_QUEUE_URL" help:"Send orders through everything deployed, in Stripe's test mode. Needs what refresh needs, and the queues."`
}

func main() {
	var c commands
	errOut := shell.Painted(os.Stderr, wrong(), os.Environ())
	parser, err := newParser(&c, kong.Writers(os.Stdout, shell.Visible(errOut)))
	parser.FatalIfErrorf(err)
	k, err := parser.Parse(os.Args[1:])
	parser.FatalIfErrorf(usage(err))
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	err = c.run(ctx, k, shell.Shell{
		Environ: os.Environ(), In: shell.Interruptible(ctx, os.Stdin), ErrOut: errOut, Now: time.Now,
		Out: shell.Painted(os.Stdout, wrong(), os.Environ()),
		AWS: c.Account.Load, EmptyWait: time.Second, Terminal: term.IsTerminal(int(os.Stdout.Fd())),
	})
	stop()
	k.FatalIfErrorf(cloud.Hint(err))
}

// endings are the signals that end a command. Each ends its context instead of the
// process, so that the command puts back what it holds: messages that it received from a
// queue would otherwise stay hidden for minutes.
func endings() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} }

func newParser(c *commands, more ...kong.Option) (*kong.Kong, error) {
	details := kong.PostBuild(explain)
	build, _ := debug.ReadBuildInfo() // there is one in every module
	version := kong.Vars{"version": describe(build)}
	description := kong.Description(strings.Join([]string{
		"Post, show and settle orders, and check a deployment. Region and credentials are found as by the AWS CLI: flags, environment,",
		"profiles, SSO, roles. The other settings are those of the deployment: . ./build/deploy/env, which make deploy wrote.",
		"For the system that `make up` runs: . ./build/up/env",
		"",
		"Exit codes: 0 done, 1 an error, 2 done, and something is left or differs, 80 a wrong command line.",
	}, "\n"))
	return kong.New(c, append([]kong.Option{kong.Name("orders"), details, version, description}, more...)...)
}

//go:embed help.txt
var help string

// explain adds to the help of each command what help.txt has below its name.
func explain(k *kong.Kong) error {
	details := map[string]string{}
	for section := range strings.SplitSeq(strings.TrimPrefix(help, "== "), "\n== ") {
		command, text, _ := strings.Cut(section, "\n")
		details[command] = strings.TrimSpace(text)
	}
	return kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		if n, is := v.(*kong.Node); is {
			n.Detail = details[n.Path()]
		}
		return next(nil)
	})
}

// run runs the command that k has parsed, in the deployment with the variables that the
// command or a group of commands needs.
func (c *commands) run(ctx context.Context, k *kong.Context, sh shell.Shell) error {
	sh.JSON = c.JSON
	k.BindTo(ctx, (*context.Context)(nil))
	var needs []string
	for n := k.Selected(); n.Parent != nil; n = n.Parent {
		needs = append(needs, strings.Fields(n.Tag.Get("needs"))...)
	}
	err := k.BindToProvider(func() (cloud.Deployment, error) { return cloud.Open(ctx, sh, needs...) })
	if err == nil {
		err = k.Run(sh)
	}
	return err
}

// dead is `orders dead-letters`.
type dead struct {
	List    listDead    `cmd:"" help:"List dead letters: what happened to the money, and what to do."`
	Show    showDead    `cmd:"" help:"Show dead letters whole, with their rows."`
	Redrive redriveDead `cmd:"" help:"Send dead letters back to their queue, if that is safe."`
	Discard discardDead `cmd:"" help:"Delete dead letters, if there is nothing left to do."`
}

// refunds are the commands of `orders refund`.
type refunds struct {
	Make    makeRefund    `cmd:"" needs:"ORDERS_TABLE SCOPE REFUND_QUEUE_URL" default:"withargs" help:"Give money of an order back, once. Needs ORDERS_TABLE, SCOPE and REFUND_QUEUE_URL."`
	List    listRefunds   `cmd:"" needs:"ORDERS_TABLE" help:"List the refunds that only a person can end. Needs ORDERS_TABLE."`
	Batch   batchRefunds  `cmd:"" needs:"ORDERS_TABLE SCOPE REFUND_QUEUE_URL" help:"Give money of many orders back, as a file says. Needs what make needs."`
	Resolve resolveRefund `cmd:"" needs:"ORDERS_TABLE SCOPE STRIPE_SECRET_KEY" help:"End a refund whose result is unknown. Needs what refresh needs."`
}

// receipts are the commands of `orders receipts`.
type receipts struct {
	List    listReceipts     `cmd:"" default:"withargs" help:"List the doubtful receipts, or those of an order. Needs RECEIPTS_TABLE."`
	Resolve resolveReceipt   `cmd:"" help:"Decide whether a doubtful receipt was sent, or many. Needs RECEIPTS_TABLE."`
	Again   sendReceiptAgain `cmd:"" help:"Send a receipt again, to a customer without it. Needs RECEIPTS_TABLE."`
}
