# The schedule of functions/reconcile. A run looks at the orders that are due in the index
# open and settles those that Stripe has settled. A run that is missed or fails needs no
# retry: the orders stay due, and the next run continues.

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
