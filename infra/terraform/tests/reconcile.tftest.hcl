mock_provider "aws" {
  source = "./tests/mocks"
}

# A distinct ARN, so that the schedule cannot use the role of a function.
# infra/drift_test.go checks which alias is invoked, because all aliases have the same ARN here.
override_resource {
  target = aws_iam_role.reconcile_schedule
  values = { id = "schedule", arn = "arn:aws:iam::123456789012:role/schedule" }
}

run "the_function_ends_before_the_next_run" {
  command = plan

  assert {
    condition = (
      aws_lambda_function.functions["reconcile"].reserved_concurrent_executions == null
      && aws_lambda_function.functions["reconcile"].timeout < 60
      && aws_lambda_function.functions["reconcile"].memory_size == 256
    )
    error_message = "function: must end within a minute, reserve no concurrency and have 256 MB"
  }

  assert {
    condition = (
      aws_lambda_function.functions["reconcile"].source_code_hash
      == filebase64sha256("tests/packages/reconcile.zip")
    )
    error_message = "source_code_hash: must be the hash of reconcile.zip"
  }

  assert {
    condition = startswith(
      aws_lambda_function.functions["reconcile"].description, "Settles orders that wait. Key 1. Zip ",
    )
    error_message = "description: must contain the version of the key, so that a rotation publishes"
  }

  assert {
    condition     = aws_cloudwatch_log_group.functions["reconcile"].retention_in_days == 90
    error_message = "log group: must expire"
  }
}

run "the_environment_is_complete" {
  assert {
    condition = aws_lambda_function.functions["reconcile"].environment[0].variables == tomap({
      ORDERS_TABLE      = "orderonce-dev-orders"
      SCOPE             = "orderonce-dev-836569"
      STRIPE_SECRET_ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      STRIPE_TIMEOUT    = "8s"
      STRIPE_RATE       = "10"
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }
}

run "the_schedule_invokes_the_alias_every_five_minutes" {
  assert {
    condition     = aws_scheduler_schedule.reconcile.schedule_expression == "rate(5 minutes)"
    error_message = "schedule_expression: got ${aws_scheduler_schedule.reconcile.schedule_expression}"
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.name == "orderonce-dev-reconcile"
      && aws_scheduler_schedule.reconcile.state == "ENABLED"
      && aws_scheduler_schedule.reconcile.flexible_time_window[0].mode == "OFF"
    )
    error_message = "schedule: must be enabled, without a flexible time window"
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.target[0].arn == output.function_aliases["reconcile"]
      && aws_scheduler_schedule.reconcile.target[0].input == "{}"
    )
    error_message = "target: must be the alias live, with an empty object"
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.target[0].role_arn == "arn:aws:iam::123456789012:role/schedule"
    )
    error_message = "target: must have the role of the schedule"
  }
}

run "a_failed_or_throttled_event_is_not_repeated_after_the_next_one" {
  command = plan

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.target[0].retry_policy[0].maximum_retry_attempts == 0
      && aws_lambda_function_event_invoke_config.reconcile.maximum_retry_attempts == 0
    )
    error_message = "maximum_retry_attempts: must be 0 in both, because the next run continues"
  }

  assert {
    condition = (
      aws_lambda_function_event_invoke_config.reconcile.function_name == "orderonce-dev-reconcile"
      && aws_lambda_function_event_invoke_config.reconcile.qualifier == "live"
    )
    error_message = "event invoke config: must apply to the alias that the schedule invokes"
  }

  assert {
    condition     = aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 300
    error_message = "maximum_event_age_in_seconds: must end when the next event is due"
  }
}

run "interval_and_rate_can_be_changed" {
  command = plan

  variables {
    reconcile_minutes = 1
    reconcile_rate    = 100
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconcile.schedule_expression == "rate(1 minutes)"
      && aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 60
    )
    error_message = "reconcile_minutes: ignored"
  }
}

run "an_event_is_dropped_after_five_minutes_at_the_latest" {
  command = plan

  variables {
    reconcile_minutes = 60
  }

  assert {
    condition     = aws_lambda_function_event_invoke_config.reconcile.maximum_event_age_in_seconds == 300
    error_message = "maximum_event_age_in_seconds: must be at most 300"
  }

  # Runs are an hour apart, so two of them never fall into twelve periods of five minutes.
  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["reconcile-errors"].evaluation_periods >= 13
    error_message = "reconcile-errors: must include two consecutive runs"
  }
}

run "the_rate_reaches_the_function" {
  variables {
    reconcile_rate = 100
  }

  assert {
    condition     = aws_lambda_function.functions["reconcile"].environment[0].variables.STRIPE_RATE == "100"
    error_message = "reconcile_rate: ignored"
  }
}

run "only_schedules_of_this_account_can_assume_the_role" {
  command = plan

  assert {
    condition = jsonencode(jsondecode(aws_iam_role.reconcile_schedule.assume_role_policy).Statement) == (
      jsonencode([{
        Sid       = "AssumedByScheduler"
        Effect    = "Allow"
        Principal = { Service = "scheduler.amazonaws.com" }
        Action    = "sts:AssumeRole"
        Condition = { StringEquals = { "aws:SourceAccount" = "123456789012" } }
      }])
    )
    error_message = "assume_role_policy: got ${aws_iam_role.reconcile_schedule.assume_role_policy}"
  }

  assert {
    condition     = aws_iam_role.reconcile_schedule.name == "orderonce-dev-reconcile-schedule"
    error_message = "role: the schedule must have its own"
  }
}

run "the_schedule_may_invoke_the_alias_and_nothing_else" {
  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_role_policy.reconcile_schedule.policy).Statement :
      [s.Effect, s.Action, s.Resource]
      ]) == jsonencode([
      ["Allow", "lambda:InvokeFunction", "arn:aws:lambda:eu-west-1:123456789012:function:function:live"],
    ])
    error_message = "policy: got ${aws_iam_role_policy.reconcile_schedule.policy}"
  }

  assert {
    condition     = aws_iam_role_policy.reconcile_schedule.role == "schedule"
    error_message = "policy: belongs to another role"
  }
}

run "the_role_allows_exact_actions_on_exact_arns" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_role_policy.reconcile.policy).Statement :
      s.Sid => [s.Effect, sort(flatten([s.Action])), sort(flatten([s.Resource]))]
      }) == jsonencode({
      FindAndLoadWaitingOrders = [
        "Allow", ["dynamodb:Query"],
        [
          "arn:aws:dynamodb:eu-west-1:123456789012:table/table",
          "arn:aws:dynamodb:eu-west-1:123456789012:table/table/index/open",
        ],
      ]
      LoadRefunds = [
        "Allow", ["dynamodb:GetItem"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      SettleWaitingOrders = [
        "Allow", ["dynamodb:PutItem", "dynamodb:UpdateItem"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      ReadKeyToReconcile = [
        "Allow", ["secretsmanager:GetSecretValue"],
        ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"],
      ]
      WriteReconcileLogs = [
        "Allow", ["logs:CreateLogStream", "logs:PutLogEvents"],
        ["${aws_cloudwatch_log_group.functions["reconcile"].arn}:log-stream:*"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_role_policy.reconcile.policy}"
  }

  assert {
    condition = (
      aws_iam_role_policy.reconcile.role == aws_iam_role.functions["reconcile"].id
      && aws_iam_role.functions["reconcile"].name == "orderonce-dev-reconcile"
    )
    error_message = "role: the function must have its own, with this policy"
  }
}

run "alarms_read_the_metrics_of_the_function" {
  command = plan

  assert {
    condition = jsonencode({ for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => flatten([
      for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        [metric.namespace, metric.metric_name, metric.stat],
        [for dimension in sort(keys(metric.dimensions)) : "${dimension}=${metric.dimensions[dimension]}"],
      ))]
      ]) if can(regex("^(reconcile-|orders-without-|orders-waiting-)", name)) }) == jsonencode({
      reconcile-behind      = ["orderonce Overdue Maximum Scope=orderonce-dev-836569"]
      reconcile-failing     = ["orderonce Reconciled Sum Result=failed Scope=orderonce-dev-836569"]
      reconcile-errors      = ["AWS/Lambda Errors Sum FunctionName=orderonce-dev-reconcile"]
      reconcile-mismatch    = ["orderonce Reconciled Sum Result=mismatch Scope=orderonce-dev-836569"]
      reconcile-missing     = ["AWS/Lambda Invocations Sum FunctionName=orderonce-dev-reconcile"]
      orders-without-intent = ["orderonce Reconciled Sum Result=no_intent Scope=orderonce-dev-836569"]
      orders-waiting-open = [
        "orderonce OldestWaiting Maximum Scope=orderonce-dev-836569 Status=open",
      ]
      orders-waiting-action-required = [
        "orderonce OldestWaiting Maximum Scope=orderonce-dev-836569 Status=action_required",
      ]
      orders-waiting-pending = [
        "orderonce OldestWaiting Maximum Scope=orderonce-dev-836569 Status=pending",
      ]
    })
    error_message = "reconcile alarms: metrics differ from this list"
  }

  assert {
    condition = alltrue([for name in ["reconcile-mismatch", "orders-without-intent"] :
      aws_cloudwatch_metric_alarm.alarms[name].threshold == 0
      && aws_cloudwatch_metric_alarm.alarms[name].datapoints_to_alarm == 1
    ])
    error_message = "reconcile-mismatch, orders-without-intent: one order needs a person"
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.alarms["reconcile-errors"].threshold == 0
      && aws_cloudwatch_metric_alarm.alarms["reconcile-errors"].datapoints_to_alarm == 2
      && aws_cloudwatch_metric_alarm.alarms["reconcile-errors"].evaluation_periods == 12
    )
    error_message = "reconcile-errors: must need two failed runs in an hour"
  }

  # Lambda writes no metric of a function that is not invoked.
  assert {
    condition = (
      aws_cloudwatch_metric_alarm.alarms["reconcile-missing"].comparison_operator == "LessThanThreshold"
      && aws_cloudwatch_metric_alarm.alarms["reconcile-missing"].threshold == 1
      && aws_cloudwatch_metric_alarm.alarms["reconcile-missing"].treat_missing_data == "breaching"
      && aws_cloudwatch_metric_alarm.alarms["reconcile-missing"].datapoints_to_alarm == 3
      && aws_cloudwatch_metric_alarm.alarms["reconcile-missing"].evaluation_periods == 3
      && [for query in aws_cloudwatch_metric_alarm.alarms["reconcile-missing"].metric_query :
        [for m in query.metric : m.period]
      ] == [[300]]
    )
    error_message = "reconcile-missing: must be raised by three intervals without an invocation"
  }
}

run "each_status_has_its_own_limit" {
  command = plan

  assert {
    condition = { for name, alarm in aws_cloudwatch_metric_alarm.alarms :
      name => alarm.threshold / 3600000 if startswith(name, "orders-waiting-")
      } == {
      orders-waiting-open            = 1
      orders-waiting-action-required = 72
      orders-waiting-pending         = 336
    }
    error_message = "orders-waiting-*: hours differ from this list"
  }

  # A look is postponed by up to 24 hours, and runs are at most one hour apart. Part of an
  # hour at each end counts as a period.
  assert {
    condition = alltrue([for name, alarm in aws_cloudwatch_metric_alarm.alarms :
      alarm.datapoints_to_alarm == 1 && alarm.evaluation_periods >= 26
      && alltrue(flatten([for query in alarm.metric_query : [for m in query.metric : m.period == 3600]]))
      if startswith(name, "orders-waiting-")
    ])
    error_message = "orders-waiting-*: must stay on until the next look"
  }

  # CloudWatch API reference, PutMetricAlarm.
  assert {
    condition = alltrue(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms : [
      for query in alarm.metric_query : [for m in query.metric :
        m.period * alarm.evaluation_periods <= (m.period < 3600 ? 86400 : 604800)
      ]
    ]]))
    error_message = "CloudWatch rejects more than a day, or seven days with periods of an hour"
  }
}

run "outputs_name_the_function_and_its_logs" {
  assert {
    condition = (
      output.reconcile_function_name == "orderonce-dev-reconcile"
      && output.reconcile_log_group == "/aws/lambda/orderonce-dev-reconcile"
      && output.function_aliases["reconcile"] == aws_lambda_alias.live["reconcile"].arn
    )
    error_message = "outputs: one is missing or wrong"
  }
}

run "it_also_runs_without_webhooks" {
  variables {
    create_webhook = false
  }

  assert {
    condition = (
      contains(keys(aws_lambda_function.functions), "reconcile")
      && contains(keys(aws_cloudwatch_metric_alarm.alarms), "reconcile-errors")
    )
    error_message = "create_webhook: must not remove the reconcile function or its alarms"
  }
}
