# A deployment with every part: names, functions, queues, tables, triggers. permissions.tftest.hcl has its
# policies, alarms.tftest.hcl its alarms, and parts.tftest.hcl what variables turn off or change.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  create_intake             = true
  create_receipts           = true
  stock_tracking            = true
  create_example_subscriber = true
  webhook_secret_version    = 3
}

# First, because pins.tf rejects it once standard queues are in the state.
run "fifo_creates_fifo_queues_but_for_events" {
  command = plan

  variables {
    fifo = true
  }

  assert {
    condition = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
      name => q.name if q.fifo_queue == true
    } == { for name in ["orders", "refunds", "orders-dead", "refunds-dead"] : name => "orderonce-dev-${name}.fifo" }
    error_message = "fifo: ignored, or a queue of events is FIFO, but a rule sends no message group"
  }

  assert {
    condition = alltrue([for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
      q.deduplication_scope == "messageGroup" && q.fifo_throughput_limit == "perMessageGroupId"
      && q.content_based_deduplication == !endswith(name, "-dead") if endswith(q.name, ".fifo")
    ])
    error_message = "throughput and deduplication must be per message group; two parked messages may have the same body"
  }
}

run "every_name_contains_the_environment" {
  command = plan

  variables {
    environment = "other"
    scope       = "given"
    intake_jwt  = { issuer = "https://issuer.invalid", audience = ["shop"] }
  }

  assert {
    condition = alltrue([for name in concat(
      values(aws_sqs_queue.queues)[*].name, values(aws_sqs_queue.dead_letters)[*].name,
      values(aws_lambda_function.functions)[*].function_name, values(aws_iam_role.functions)[*].name,
      [for group in aws_cloudwatch_log_group.functions : trimprefix(group.name, "/aws/lambda/")],
      values(aws_cloudwatch_metric_alarm.alarms)[*].alarm_name, values(aws_cloudwatch_event_rule.receipts)[*].name,
      [
        aws_dynamodb_table.orders.name, aws_dynamodb_table.stock[0].name, aws_dynamodb_table.receipts[0].name,
        aws_secretsmanager_secret.stripe.name, aws_secretsmanager_secret.webhook[0].name,
        aws_apigatewayv2_api.webhook[0].name, aws_apigatewayv2_api.orders[0].name,
        aws_apigatewayv2_authorizer.intake[0].name, aws_cloudwatch_dashboard.orders[0].dashboard_name,
        trimprefix(aws_cloudwatch_log_group.webhook_access[0].name, "/aws/vendedlogs/"),
        trimprefix(aws_cloudwatch_log_group.intake_access[0].name, "/aws/vendedlogs/"),
        aws_cloudwatch_event_bus.orders.name, aws_cloudwatch_event_archive.orders.name,
        aws_cloudwatch_event_rule.paid[0].name,
      ],
    ) : startswith(name, "orderonce-other")])
    error_message = "a name lacks the environment: two environments in one account would collide"
  }

  assert {
    condition = (
      output.scope == "given" && aws_lambda_function.functions["order"].environment[0].variables.SCOPE == "given"
    )
    error_message = "scope: got ${output.scope}"
  }
}

# The hash is of "210987654321/us-east-1".
run "the_default_scope_differs_between_accounts_and_regions" {
  command = plan

  override_data {
    target = data.aws_caller_identity.current
    values = { account_id = "210987654321" }
  }

  override_data {
    target = data.aws_region.current
    values = { region = "us-east-1" }
  }

  assert {
    condition     = output.scope == "orderonce-dev-2ac060"
    error_message = "scope: got ${output.scope}, two of them may share a Stripe account"
  }
}

# environments.txt has a line for each variable; docs/reference/configuration.md explains them. Without the
# stock table, an order or its cancellation would leak stock.
run "the_functions_have_these_settings" {
  variables {
    intake_jwt = { issuer = "https://issuer.invalid", audience = ["shop"], customer_claim = "payer" }
  }

  assert {
    condition = join("", flatten([for function, f in aws_lambda_function.functions : [
      for name, value in f.environment[0].variables : "${function} ${name}=${value}\n"
      ]])) == templatefile("tests/environments.txt", {
      queue   = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : name => q.url }
      stripe  = aws_secretsmanager_secret.stripe.arn
      webhook = aws_secretsmanager_secret.webhook[0].arn
    })
    error_message = "environment: differs from tests/environments.txt"
  }

  # A thin event reads Stripe twice.
  assert {
    condition = 2 * tonumber(trimsuffix(
      aws_lambda_function.functions["webhook"].environment[0].variables.STRIPE_TIMEOUT, "s",
    )) <= aws_lambda_function.functions["webhook"].timeout - 5
    error_message = "webhook: STRIPE_TIMEOUT: two calls must leave 5 s to the table"
  }
}

# The files of resources have a line for each: its type and name, and what follows here. They say why.
run "the_resources_are_those_that_are_listed" {
  assert {
    condition = toset([for line in concat(
      [for name, f in aws_lambda_function.functions : ["function", name, f.function_name, f.runtime, f.architectures,
        f.memory_size, f.timeout, f.reserved_concurrent_executions,
        f.logging_config[0].log_format, f.logging_config[0].application_log_level, f.logging_config[0].log_group,
        replace(f.description, filesha256("tests/packages/${name}.zip"), "SHA256"),
        f.source_code_hash == filebase64sha256("tests/packages/${name}.zip"),
        aws_cloudwatch_log_group.functions[name].name, aws_cloudwatch_log_group.functions[name].retention_in_days,
        aws_lambda_alias.live[name].name, aws_lambda_alias.live[name].function_name,
        aws_lambda_alias.live[name].function_version == f.version,
      ]],
      [for group in concat(aws_cloudwatch_log_group.intake_access, aws_cloudwatch_log_group.webhook_access) :
        ["log", group.name, group.retention_in_days]
      ],
      [for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : ["queue", name, q.name,
        q.message_retention_seconds, q.sqs_managed_sse_enabled, try(q.visibility_timeout_seconds, null),
        q.receive_wait_time_seconds, q.max_message_size, endswith(name, "-dead") || name == "unpublished"
        ? try(aws_sqs_queue_redrive_allow_policy.dead_letters[name].redrive_allow_policy, null) : q.redrive_policy,
      ]],
      [for name, m in aws_lambda_event_source_mapping.queues : ["mapping", name, m.event_source_arn, m.function_name,
        m.batch_size, m.enabled, m.scaling_config[*].maximum_concurrency, m.function_response_types,
        m.metrics_config[0].metrics, length(m.filter_criteria),
      ]],
      [for m in [aws_lambda_event_source_mapping.publish] : ["mapping", "publish", m.event_source_arn, m.function_name,
        m.batch_size, m.enabled, m.starting_position, m.parallelization_factor, m.function_response_types,
        m.bisect_batch_on_function_error, m.maximum_retry_attempts, m.maximum_record_age_in_seconds,
        m.destination_config[0].on_failure[0].destination_arn, one(m.filter_criteria[0].filter).pattern,
      ]],
      [for name, t in {
        orders = aws_dynamodb_table.orders, stock = aws_dynamodb_table.stock[0], receipts = aws_dynamodb_table.receipts[0]
        } : ["table", name, t.name, t.deletion_protection_enabled, t.point_in_time_recovery[0].enabled, t.billing_mode,
        try(t.server_side_encryption[0].enabled, false), t.stream_enabled == true ? t.stream_view_type : null, [for ttl in t.ttl : ttl.attribute_name if ttl.enabled],
      ]],
      [for a in concat(aws_apigatewayv2_api.orders, aws_apigatewayv2_api.webhook) :
        ["api", a.name, a.protocol_type, length(a.cors_configuration)]
      ],
      [for r in concat(values(aws_apigatewayv2_route.intake), aws_apigatewayv2_route.webhook) : ["route", r.route_key,
        r.api_id, r.authorizer_id, r.target, r.api_id == "orders" ? r.authorization_type : null,
      ]],
      [for i in concat(aws_apigatewayv2_integration.intake, aws_apigatewayv2_integration.webhook) : ["integration",
        i.api_id, i.integration_uri, i.integration_type, i.integration_method, i.payload_format_version,
      ]],
      [for p in concat(values(aws_lambda_permission.intake), aws_lambda_permission.webhook) : ["permission",
        p.statement_id, p.principal, p.action, p.function_name, p.qualifier, p.source_arn,
      ]],
      [for s in concat(aws_apigatewayv2_stage.orders, aws_apigatewayv2_stage.webhook) : ["stage", s.api_id, s.name,
        s.auto_deploy, s.access_log_settings[0].destination_arn, s.default_route_settings[0].throttling_burst_limit,
        s.default_route_settings[0].throttling_rate_limit, values(jsondecode(s.access_log_settings[0].format)),
      ]],
      [for s in [aws_scheduler_schedule.reconcile] : ["schedule", s.name, s.state, s.schedule_expression,
        s.flexible_time_window[0].mode, s.target[0].input, s.target[0].arn, s.target[0].role_arn,
        s.target[0].retry_policy[0].maximum_retry_attempts,
      ]],
      [for c in [aws_lambda_function_event_invoke_config.reconcile] : ["invoke", c.function_name, c.qualifier,
        c.maximum_retry_attempts, c.maximum_event_age_in_seconds,
      ]],
      [for b in [aws_cloudwatch_event_bus.orders] : ["bus", b.name, b.kms_key_identifier]],
      [for a in [aws_cloudwatch_event_archive.orders] :
        ["archive", a.name, a.event_source_arn == output.event_bus_arn, a.retention_days, a.event_pattern]
      ],
      flatten([for r in concat(values(aws_cloudwatch_event_rule.receipts), aws_cloudwatch_event_rule.paid) : [
        for type in jsondecode(r.event_pattern)["detail-type"] : join(" ", ["rule", r.name, r.event_bus_name, type,
          jsonencode({ for key, value in jsondecode(r.event_pattern) : key => value if key != "detail-type" }),
        ])
      ]]),
      [for t in concat(values(aws_cloudwatch_event_target.receipts), aws_cloudwatch_event_target.paid) :
        ["target", t.rule, t.event_bus_name, t.arn, t.dead_letter_config[0].arn]
      ],
      ) : try(tostring(line), join(" ", [for v in line : v == null ? "-" : try(tostring(v), jsonencode(v))]))
      ]) == toset(flatten([for file in fileset("tests", "resources/*") : [
        for line in split("\n", templatefile("tests/${file}", {
          queue  = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) : name => q.arn }
          alias  = { for name, alias in aws_lambda_alias.live : name => alias.arn }
          invoke = { for name, alias in aws_lambda_alias.live : name => alias.invoke_arn }
          stream = aws_dynamodb_table.orders.stream_arn
          integration = {
            orders  = aws_apigatewayv2_integration.intake[0].id
            webhook = aws_apigatewayv2_integration.webhook[0].id
          }
          role = aws_iam_role.reconcile_schedule.arn
          access = {
            intake  = aws_cloudwatch_log_group.intake_access[0].arn
            webhook = aws_cloudwatch_log_group.webhook_access[0].arn
          }
        })) : line if line != "" && !startswith(line, "#")]
    ]))
    error_message = "resources: differ from tests/resources"
  }

  assert {
    condition     = alltrue([for f in aws_lambda_function.functions : f.tracing_config[0].mode == "PassThrough"])
    error_message = "tracing: must be off unless it is asked for, because X-Ray charges for it"
  }

  assert {
    condition = (
      length(aws_apigatewayv2_authorizer.intake) == 0
      && output.intake_url == "https://orders.execute-api.eu-west-1.amazonaws.com/orders"
      && output.webhook_url == "https://a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com/stripe/webhook"
    )
    error_message = "URLs: differ from this list, or IAM and tokens are mixed"
  }
}

run "outputs_have_what_guides_and_runbooks_need" {
  assert {
    condition = (
      output.order_queue_url == aws_sqs_queue.queues["orders"].url
      && output.refund_queue_url == aws_sqs_queue.queues["refunds"].url
      && output.paid_queue_url == aws_sqs_queue.queues["paid"].url
      && output.event_source_mapping_uuid == aws_lambda_event_source_mapping.queues["orders"].uuid
      && output.refund_event_source_mapping_uuid == aws_lambda_event_source_mapping.queues["refunds"].uuid
      && output.orders_table == "orderonce-dev-orders"
      && output.orders_stream_arn == aws_dynamodb_table.orders.stream_arn
      && output.event_bus_name == "orderonce-dev-orders"
      && output.event_bus_arn == aws_cloudwatch_event_bus.orders.arn
      && output.event_archive_arn == "arn:aws:events:eu-west-1:123456789012:archive/orders"
      && output.event_source == "orderonce.orderonce-dev-836569"
      && output.apis["orderonce-dev-webhook"] == "a1b2c3d4e5"
      && output.apis[aws_apigatewayv2_api.orders[0].name] == "orders"
      && output.secrets.stripe == aws_secretsmanager_secret.stripe.arn
      && output.secrets.webhook == aws_secretsmanager_secret.webhook[0].arn
      && output.tables.receipts.arn == "arn:aws:dynamodb:eu-west-1:123456789012:table/receipts"
      && output.tables.receipts.name == "orderonce-dev-receipts"
    )
    error_message = "outputs: one is missing or wrong"
  }

  assert {
    condition = (
      output.functions == { for name, alias in aws_lambda_alias.live :
        name => { name = "orderonce-dev-${name}", alias = alias.arn, role = aws_iam_role.functions[name].arn }
      }
      && output.log_groups == merge(
        { for name in keys(aws_lambda_function.functions) : name => "/aws/lambda/orderonce-dev-${name}" },
        { for name in ["webhook-access", "intake-access"] : name => "/aws/vendedlogs/orderonce-dev-${name}" },
      )
      && output.queues == { for name, queue in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
        name => { url = queue.url, arn = queue.arn }
      }
    )
    error_message = "outputs: a function, a log group or a queue is missing or wrong"
  }

  assert {
    condition = strcontains(output.operator_environment, join("\n", [
      "", "export STOCK_TABLE=orderonce-dev-stock", "export RECEIPTS_TABLE=orderonce-dev-receipts", "",
    ]))
    error_message = "operator_environment: the operator's tool would cancel orders without releasing stock"
  }
}

run "a_new_table_gets_the_warm_throughput" {
  command = plan

  plan_options {
    replace = [aws_dynamodb_table.orders]
  }

  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }

  assert {
    condition = [for w in aws_dynamodb_table.orders.warm_throughput : [
      w.write_units_per_second, w.read_units_per_second,
    ]] == [[8000, 12000]]
    error_message = "warm_throughput: ignored"
  }
}

run "warm_throughput_never_replaces_a_table" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 4000 }
  }

  assert {
    condition     = length(aws_dynamodb_table.orders.warm_throughput) == 0
    error_message = "warm_throughput: changing it would replace the table"
  }
}

# Last, because pins.tf keeps the key.
run "kms_key_arn_encrypts_queues_tables_and_secrets_but_no_queues_of_events" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = alltrue(concat(
      [for key in concat([aws_secretsmanager_secret.stripe.kms_key_id], aws_secretsmanager_secret.webhook[*].kms_key_id) :
        key == var.kms_key_arn
      ],
      [for table in [aws_dynamodb_table.orders, aws_dynamodb_table.stock[0], aws_dynamodb_table.receipts[0]] :
        table.server_side_encryption[0].enabled && table.server_side_encryption[0].kms_key_arn == var.kms_key_arn
      ],
    ))
    error_message = "kms_key_arn: ignored by a table or a secret"
  }

  assert {
    condition = { for name, q in merge(aws_sqs_queue.queues, aws_sqs_queue.dead_letters) :
      name => true if q.kms_master_key_id == var.kms_key_arn
    } == { orders = true, orders-dead = true, refunds = true, refunds-dead = true, unpublished = true }
    error_message = "queues: EventBridge could not send without a statement in the policy of the key"
  }
}
