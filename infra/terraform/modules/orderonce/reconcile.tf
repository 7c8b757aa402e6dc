# The schedule of functions/reconcile. A run rechecks the orders that are due in the index
# open and settles those that Stripe has settled. A run that is missed or fails needs no
# retry: the orders stay due, and the next run continues.

locals {
  reconcile = {
    function = {
      description  = "Settles orders that wait"
      timeout      = 55 # shorter than the shortest schedule, so that no two runs overlap
      kms_services = ["dynamodb", "secretsmanager"]
    }
    essential = [
      "reconcile-errors", "reconcile-missing", "reconcile-mismatch", "reconcile-failing",
      "reconcile-behind", "orders-waiting-open",
    ]
    alarms = merge({
      # Two failed runs within an hour, or two consecutive ones if they are an hour apart.
      reconcile-errors = {
        metric      = "lambda/reconcile Errors Sum", periods = [2, max(12, ceil(var.reconcile_minutes / 5) + 2)]
        description = <<-EOT
        The reconcile function failed twice: it crashed, timed out, failed to start, could not read the index,
        or got no answer of Stripe or DynamoDB. Orders that wait are not settled by it; none is lost. Read its
        log: ${local.runbook}, "Reconcile fails".
      EOT
      }
      # The schedule may be disabled, deleted or not allowed to invoke the function.
      # Lambda writes no Invocations then, so missing data must be breaching.
      reconcile-missing = {
        metric = "lambda/reconcile Invocations Sum", below = 1, periods = [3, 3]
        period = 60 * var.reconcile_minutes, description = <<-EOT
        The reconcile function was not invoked for three intervals of its schedule. Orders that wait are
        settled by webhooks only: ${local.runbook}, "Reconcile fails". After the first apply the alarm is on
        until the first run.
      EOT
      }
      reconcile-mismatch = { metric = "app Reconciled Sum Result=mismatch", description = <<-EOT
        An order that waits and its PaymentIntent disagree: another PaymentIntent may have taken money, or two
        deployments may share a scope. The function's log has order_id. Compare the two before anything else:
        ${local.runbook}, "A webhook does not match its row".
      EOT
      }
      # A recheck that failed is repeated within 6 hours, by a run at most an hour later. So
      # one breaching hour of 8 raises the alarm and keeps it on in between.
      reconcile-failing = {
        metric = "app Reconciled Sum Result=failed", periods = [1, 8], period = 60 * 60, description = <<-EOT
        The reconcile function cannot look at some orders: their rows are corrupt or of a newer release, their
        PaymentIntents are in another account, or the key lacks a permission. Or STOCK_TABLE is not set. The
        others are looked at. Its log has each order_id and error: ${local.runbook}, "Reconcile fails".
      EOT
      }
      reconcile-behind = {
        metric      = "app Overdue Maximum", above = 6 * 60 * 60 * 1000, periods = [1, 2], period = 60 * 60
        description = <<-EOT
        An order was due for more than 6 hours before the reconcile function looked at it: there are more
        orders than its runs can look at, or it did not run. ${local.runbook}, "Reconcile fails".
      EOT
      }
      orders-without-intent = { metric = "app Reconciled Sum Result=no_intent", description = <<-EOT
        An order has been open for at least 15 minutes without a PaymentIntent and without a worker. It was
        not charged. Only its message can charge it, and the message may be gone: ${local.runbook}, "An open
        order without an intent".
      EOT
      }
      }, {
      # The metric has a value only when the function looks at an order, and it postpones
      # the next look by the time that the order has waited, up to a day. The next run is
      # at most an hour later. So one breaching hour of 26 raises the alarm and keeps it
      # on until the next look. CloudWatch allows more than a day only with periods of at
      # least an hour.
      for status, limit in local.waiting_limits : "orders-waiting-${replace(status, "_", "-")}" => {
        metric  = "app OldestWaiting Maximum Status=${status}", above = limit.hours * 60 * 60 * 1000
        periods = [1, 26], period = 60 * 60, description = <<-EOT
        An order has had the status ${status} for more than ${limit.hours} h: ${limit.cause}. Find it with the
        index open: ${local.runbook}, "Orders wait too long". The alarm stays on for up to 26 hours after the
        order is settled.
      EOT
      }
    })
  }

  open_causes = join(", or ", [
    "its message is being retried or lost",
    "a refund has had no attempt for a day",
  ])

  # The hours after which an order of each status has waited too long, and what it waits
  # for.
  waiting_limits = {
    open            = { hours = 1, cause = local.open_causes }
    action_required = { hours = 72, cause = "the customer has not confirmed the payment" }
    pending         = { hours = 14 * 24, cause = "the bank has not decided" }
  }

  reconcile_environment = merge({
    ORDERS_TABLE      = aws_dynamodb_table.orders.name
    SCOPE             = local.scope
    STRIPE_SECRET_ARN = local.stripe_keys.reconcile.arn
    STRIPE_TIMEOUT    = "8s"
    STRIPE_RATE       = tostring(var.reconcile_rate)
    }, local.stock_environment,
    { for table in aws_dynamodb_table.stock : "STOCK_HOLD" => "${var.stock_hold_hours}h" },
  )

  reconcile_statements = merge({
    FindAndLoadWaitingOrders = {
      Action   = "dynamodb:Query"
      Resource = [aws_dynamodb_table.orders.arn, "${aws_dynamodb_table.orders.arn}/index/open"]
    }
    LoadRefunds = { Action = "dynamodb:GetItem", Resource = aws_dynamodb_table.orders.arn }
    SettleWaitingOrders = {
      Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem"]
      Resource = aws_dynamodb_table.orders.arn
    }
  }, local.stock_statements)
}

resource "aws_scheduler_schedule" "reconcile" {
  name                = "${local.prefix}-reconcile"
  description         = "Settles the orders of ${local.prefix} that wait"
  state               = "ENABLED" # an apply enables a schedule that was disabled by hand
  schedule_expression = "rate(${var.reconcile_minutes} minutes)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_alias.live["reconcile"].arn
    role_arn = aws_iam_role.reconcile_schedule.arn
    input    = "{}" # the function ignores it

    retry_policy {
      maximum_retry_attempts = 0
    }
  }
}

# Scheduler invokes the function asynchronously. Lambda would repeat a failed event twice,
# and a throttled one for six hours. The next run continues anyway, so Lambda drops an
# event when the next one is due, or after five minutes.
resource "aws_lambda_function_event_invoke_config" "reconcile" {
  function_name                = aws_lambda_alias.live["reconcile"].function_name
  qualifier                    = aws_lambda_alias.live["reconcile"].name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = min(60 * var.reconcile_minutes, 300)
}

resource "aws_iam_role" "reconcile_schedule" {
  name        = "${local.prefix}-reconcile-schedule"
  description = "Invokes the reconcile function of ${local.prefix}"

  permissions_boundary = var.permissions_boundary

  # Scheduler acts for every account, so only schedules of this one may use the role.
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "AssumedByScheduler"
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id }
      }
    }]
  })
}

resource "aws_iam_role_policy" "reconcile_schedule" {
  name = "invoke"
  role = aws_iam_role.reconcile_schedule.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "InvokeReconcile"
      Effect   = "Allow"
      Action   = "lambda:InvokeFunction"
      Resource = aws_lambda_alias.live["reconcile"].arn
    }]
  })
}
